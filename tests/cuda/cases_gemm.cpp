#include <numeric>

#include "tests/cuda/cases.h"

// fp8 operands lie by depth, as the casts write them. Where an operand is converted into bf16 first, the error of a sum of k
// products is at most that of one rounding of each operand, 2^-8 in all, of the sum of their magnitudes, which for random numbers
// is some sqrt(k) times the largest result.

namespace tandem::studies {
namespace {

struct GemmTypes {
  DType a, b, c;
};

constexpr std::array gemm_types{
    GemmTypes{DType::bf16, DType::bf16, DType::bf16},  // activations
    GemmTypes{DType::bf16, DType::bf16, DType::f32},   // weight gradients, the router's logits
    GemmTypes{DType::f16, DType::f16, DType::f16},     //
    GemmTypes{DType::f16, DType::f16, DType::f32},     //
    GemmTypes{DType::f32, DType::f32, DType::f32},     //
    GemmTypes{DType::f8, DType::f8, DType::bf16},      //
    GemmTypes{DType::f8, DType::f8, DType::f32},       //
    GemmTypes{DType::f32, DType::bf16, DType::bf16},   // the router's input gradient
    GemmTypes{DType::f32, DType::bf16, DType::f32},    // the router's weight gradient
};

template <typename Attributes>
OperationCase gemm_case(OpKind kind, const std::string& name, const Attributes& attributes, const GemmTypes& types, Shape a,
                        Shape b, Shape c) {
  OperationCase result{
      join_name(name, name_of(types.a), name_of(types.b), name_of(types.c), attributes.transpose_a ? "t" : "n",
                attributes.transpose_b ? "t" : "n", attributes.accumulate ? "added" : "written"),
      kind,
      attributes,
      {read(a, types.a, 1), read(b, types.b, 2), attributes.accumulate ? update(c, types.c, 3) : write(c, types.c)}};
  result.operands[0].by_columns = types.a == DType::f8 && attributes.transpose_a;
  result.operands[1].by_columns = types.b == DType::f8 && !attributes.transpose_b;
  if (types.a == DType::f8) result.tolerance = 0x1p-7;
  if (attributes.accumulate) result.tolerance += rounding_before_adding(types.c);
  return result;
}

}  // namespace

std::vector<OperationCase> gemm_cases() {
  struct Size {
    std::int64_t m, n, k;
  };
  std::vector<OperationCase> cases;
  for (const auto [m, n, k] : {Size{32, 48, 64}, {7, 16, 32}, {12, 5, 7}, {1, 1, 1}})
    for (const GemmTypes& types : gemm_types)
      for (int bits = 0; bits < 8; ++bits) {
        const GemmAttributes attributes{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
        cases.push_back(gemm_case(OpKind::gemm, join_name("gemm", m, n, k), attributes, types,
                                  attributes.transpose_a ? Shape(k, m) : Shape(m, k),
                                  attributes.transpose_b ? Shape(n, k) : Shape(k, n), Shape(m, n)));
      }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i)
    if (cases[i].operands[0].type.dtype != DType::f8) cases.push_back(skewed(cases[i]));
  return cases;
}

std::vector<OperationCase> grouped_gemm_cases() {
  constexpr std::int64_t n = 48, k = 32;
  std::vector<OperationCase> cases;
  for (const std::vector<std::int32_t>& rows :
       {std::vector{16, 16, 16}, {16, 16, 32, 48}, {5, 0, 7, 7, 1}, {0, 0}, {3}, {4, 0, 4, 4}}) {
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    const auto experts = static_cast<std::int64_t>(rows.size());
    const Shape in(all, k), out(all, n), weights(experts * n, k);
    const std::string name = join_name("experts", experts, "rows", all);
    for (const GemmTypes& types : gemm_types)
      for (const bool accumulate : {false, true}) {
        const auto add = [&](bool transpose_a, bool transpose_b, Shape a, Shape b, Shape c) {
          const GroupedGemmAttributes attributes{transpose_a, transpose_b, accumulate, rows};
          cases.push_back(gemm_case(OpKind::grouped_gemm, name, attributes, types, a, b, c));
        };
        add(false, true, in, weights, out);
        add(false, false, out, weights, in);
        add(true, false, out, in, weights);
      }
  }
  return cases;
}

}  // namespace tandem::studies
