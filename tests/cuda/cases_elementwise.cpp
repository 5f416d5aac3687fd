#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

/// Fewer than a vector, some blocks and a rest.
constexpr std::array lengths{1, 8, 2051};

}  // namespace

std::vector<OperationCase> elementwise_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    const std::string_view dtype = name_of(type);
    for (const int n : lengths) {
      const Shape shape(n);
      cases.push_back(
          {join_name("add", dtype, n), OpKind::add, {}, {read(shape, type, 1), read(shape, type, 2), write(shape, type)}});
      cases.push_back({join_name("weighted_sum", dtype, n),
                       OpKind::weighted_sum,
                       WeightedSumAttributes{1.5F, -0.25F},
                       {read(shape, type, 1), read(shape, type, 2), write(shape, type)}});
      cases.push_back({join_name("fill", dtype, n), OpKind::fill, ScaleAttributes{-1.5F}, {write(shape, type)}});
      cases.push_back({join_name("square_sum", dtype, n),
                       OpKind::square_sum,
                       ScaleAttributes{0.5F},
                       {read(shape, type, 3), update(Shape(1), DType::f32, 4)}});
      for (const DType to : {DType::f32, DType::bf16, DType::f16, DType::f8}) {
        cases.push_back({join_name("scale", dtype, "to", name_of(to), n),
                         OpKind::scale,
                         ScaleAttributes{-0.75F},
                         {read(shape, type, 5), write(shape, to)}});
      }
      cases.push_back({join_name("scale_fp8_to", dtype, n),
                       OpKind::scale,
                       ScaleAttributes{3.0F},
                       {read(shape, DType::f8, 6), write(shape, type)}});
    }
    for (const auto& [width, gates] : {std::pair(37, 37), std::pair(37, 1), std::pair(264, 8)}) {
      const Shape x(3, 2, width), z(3, 2, gates);
      const auto name = [&](const char* operation) { return join_name(operation, dtype, width, gates); };
      cases.push_back({name("sigmoid_gate"), OpKind::sigmoid_gate, {}, {read(x, type, 1), read(z, type, 2), write(x, type)}});
      cases.push_back({name("sigmoid_gate_backward"),
                       OpKind::sigmoid_gate_backward,
                       {},
                       {read(x, type, 1), read(z, type, 2), read(x, type, 3), write(x, type), write(z, type)}});
    }
    const Shape shape(1029);
    cases.push_back({join_name("softcap", dtype), OpKind::softcap, ScaleAttributes{0.7F}, {update(shape, type, 1)}});
    cases.push_back({join_name("softcap_backward", dtype),
                     OpKind::softcap_backward,
                     ScaleAttributes{1.5F},
                     {read(shape, type, 1), update(shape, type, 2)}});
    CaseOperand sum = write(shape, type), scaled = sum;
    sum.same_as = 1;
    scaled.same_as = 0;
    cases.push_back({join_name("add_in_place", dtype), OpKind::add, {}, {read(shape, type, 1), read(shape, type, 2), sum}});
    cases.push_back({join_name("scale_in_place", dtype), OpKind::scale, ScaleAttributes{2.0F}, {read(shape, type, 1), scaled}});
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  const Shape many(270000);  // more than the threads of all partial sums, one element each
  cases.push_back(skewed({"square_sum_of_many",
                          OpKind::square_sum,
                          ScaleAttributes{1},
                          {read(many, DType::bf16, 7), update(Shape(1), DType::f32, 8)}}));
  return cases;
}

}  // namespace tandem::studies
