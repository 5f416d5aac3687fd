#include <gtest/gtest.h>

#include <string>

#include "runtime/cuda/multiplied_types.h"
#include "tests/cuda/device_operand.h"

// The GEMMs' way to cuBLASLt and back, with cuBLASLt's own part emulated, against the host's.

namespace tandem {
namespace {

/// Types of A, B, C. An fp8 operand lies by depth.
struct Types {
  DType a, b, c;
  double tolerance;  ///< of the largest element: C's last bit, and that of converted operands
};

constexpr double exact = 1e-6, half_bf16_bit = 0x1p-8 * 1.001, half_f16_bit = 0x1p-11 * 1.001;
constexpr auto f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16, f8 = DType::f8;

const std::vector<Types> lowered_types{
    {bf16, bf16, bf16, half_bf16_bit},    // activations
    {bf16, bf16, f32, exact},             // weight gradients, the router's logits
    {f16, f16, f16, half_f16_bit},        // as bf16
    {f16, f16, f32, exact},               //
    {f32, f32, f32, exact},               //
    {f8, f8, bf16, 2.0 * half_bf16_bit},  // two operands rounded where fp8 cannot be multiplied
    {f8, f8, f32, 2.0 * half_bf16_bit},   //
    {f32, bf16, bf16, half_bf16_bit},     // the router's input gradient
    {f32, bf16, f32, exact},              // the router's weight gradient
    {bf16, bf16, f16, half_f16_bit}       // no case of the lowering: made in fp32
};

std::string name_of_types(const Types& types) {
  return std::string(name_of(types.a)) + "_" + std::string(name_of(types.b)) + "_" + std::string(name_of(types.c));
}

template <typename Attributes>
void expect_equal_to_host(OpKind kind, const Attributes& attributes, const Types& types, Shape a_shape, Shape b_shape,
                          Shape c_shape) {
  Tensor a = random_tensor(a_shape, 1), b = random_tensor(b_shape, 2);
  Tensor c = attributes.accumulate ? random_tensor(c_shape, 3) : Tensor(c_shape);
  DeviceOperand a_device(a, types.a, types.a == f8 && attributes.transpose_a);
  DeviceOperand b_device(b, types.b, types.b == f8 && !attributes.transpose_b);
  DeviceOperand c_device(c, types.c);
  run_on_device(kind, attributes, {&a_device, &b_device, &c_device});
  run(kind, attributes, {a.host(), b.host(), c.host()});
  expect_close(c_device.values(), c, types.tolerance);
}

class DeviceGemm : public testing::TestWithParam<Types> {};

TEST_P(DeviceGemm, EqualsTheHostsForAllAttributes) {
  for (const GemmSize size : {GemmSize{32, 48, 64}, GemmSize{7, 16, 32}, GemmSize{12, 5, 7}, GemmSize{1, 1, 1}})
    for (int bits = 0; bits < 8; ++bits) {
      const GemmAttributes attributes{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
      SCOPED_TRACE(std::to_string(size.m) + " x " + std::to_string(size.n) + ", attributes " + std::to_string(bits));
      const auto [m, n, k] = size;
      expect_equal_to_host(OpKind::gemm, attributes, GetParam(), attributes.transpose_a ? Shape(k, m) : Shape(m, k),
                           attributes.transpose_b ? Shape(n, k) : Shape(k, n), Shape(m, n));
    }
}

TEST_P(DeviceGemm, OfExpertsEqualsTheHosts) {
  constexpr std::int64_t n = 48, k = 32;
  for (const std::vector<std::int32_t>& rows : {std::vector{16, 16, 16}, {16, 16, 32, 48}, {5, 0, 7, 7, 1}, {0, 0}, {3}})
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE("rows " + testing::PrintToString(rows) + (accumulate ? ", accumulated" : ""));
      const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
      const auto experts = static_cast<std::int64_t>(rows.size());
      const Shape in(all, k), out(all, n), weights(experts * n, k);
      GroupedGemmAttributes forward{.transpose_b = true, .accumulate = accumulate, .rows = rows}, input_gradient = forward,
                                                                                                  weight_gradient = forward;
      input_gradient.transpose_b = weight_gradient.transpose_b = false;
      weight_gradient.transpose_a = true;
      expect_equal_to_host(OpKind::grouped_gemm, forward, GetParam(), in, weights, out);
      expect_equal_to_host(OpKind::grouped_gemm, input_gradient, GetParam(), out, weights, in);
      expect_equal_to_host(OpKind::grouped_gemm, weight_gradient, GetParam(), out, in, weights);
    }
}

// A trial has memory of its own: all that it is given of the operands is their types.
TEST_P(DeviceGemm, IsPreparedWithoutItsOperands) {
  const Types& types = GetParam();
  const GroupedGemmAttributes attributes{.transpose_a = true, .accumulate = true, .rows = {16, 16, 32, 0}};
  const std::vector<OperandType> operands{{Shape(64, 48), types.a}, {Shape(64, 32), types.b}, {Shape(4 * 48, 32), types.c}};
  TestQueue queue(OpKind::grouped_gemm, operands, attributes);
  EXPECT_NO_THROW(device_operation(OpKind::grouped_gemm).prepare(queue.queue, operands, attributes));
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceGemm, testing::ValuesIn(lowered_types),
                         [](const auto& types) { return name_of_types(types.param); });

std::vector<std::int32_t> counts_of_batches(const std::vector<std::int32_t>& rows, bool transpose_a) {
  const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const OperandType a{Shape(all, 8), bf16}, weights{Shape(static_cast<std::int64_t>(rows.size()) * 8, 4), bf16},
      other{Shape(all, 4), bf16};
  const GroupedGemmAttributes attributes{.transpose_a = transpose_a, .rows = rows};
  const auto products =
      transpose_a ? grouped_gemm_products(a, other, weights, attributes) : grouped_gemm_products(a, weights, other, attributes);
  std::vector<std::int32_t> counts;
  for (const ProductBatch& batch : batches_of(products)) counts.push_back(batch.count);
  return counts;
}

TEST(ProductBatches, AreRunsOfExpertsWithEqualRows) {
  using Counts = std::vector<std::int32_t>;
  EXPECT_EQ(counts_of_batches({6, 6, 6, 6}, false), Counts{4});
  EXPECT_EQ(counts_of_batches({6, 6, 5, 6, 5, 5, 5}, false), (Counts{2, 1, 1, 3}));
  EXPECT_EQ(counts_of_batches({0, 6, 0, 0, 5}, false), (Counts{1, 1})) << "no rows: no product";
  EXPECT_EQ(counts_of_batches({0, 6, 0, 0, 5}, true), (Counts{1, 1, 2, 1})) << "no rows: a gradient of zeros";
  EXPECT_EQ(counts_of_batches({6, 0, 6, 6}, false), (Counts{2, 1})) << "steps over one expert, then over none";
}

TEST(MultipliedTypes, AreTheTensorsOwnWhereCublasHasThem) {
  for (const Types& types : lowered_types) {
    if (types.a != types.b || types.c == f16) continue;
    EXPECT_EQ(multiplied_types(types.a, types.b, types.c, true), (MultipliedTypes{types.a, types.c}));
  }
  EXPECT_EQ(multiplied_types(f8, f8, f16, true), (MultipliedTypes{f8, f16}));
}

TEST(MultipliedTypes, RoundNothingTwice) {
  EXPECT_EQ(multiplied_types(f8, f8, bf16, false), (MultipliedTypes{bf16, bf16}));
  EXPECT_EQ(multiplied_types(f8, f8, f16, false), (MultipliedTypes{bf16, f32}));
  EXPECT_EQ(multiplied_types(f8, bf16, bf16, true), (MultipliedTypes{bf16, bf16}));
  EXPECT_EQ(multiplied_types(f32, bf16, bf16, true), (MultipliedTypes{f32, f32}));
  EXPECT_EQ(multiplied_types(bf16, f16, bf16, true), (MultipliedTypes{f32, f32}));
  EXPECT_THROW(multiplied_types(bf16, bf16, f8, true), std::logic_error);
}

bool fits_fp8(std::int64_t m, std::int64_t n, std::int64_t k, const GemmAttributes& attributes) {
  const OperandType a{attributes.transpose_a ? Shape(k, m) : Shape(m, k), f8};
  const OperandType b{attributes.transpose_b ? Shape(n, k) : Shape(k, n), f8};
  const MatrixProduct product = gemm_product(a, b, {Shape(m, n), bf16}, attributes);
  return fits_fp8(batches_of({&product, 1}).front());
}

TEST(Fp8Products, LieByDepthWhateverIsTransposed) {
  for (int bits = 0; bits < 4; ++bits) {
    const GemmAttributes attributes{(bits & 1) != 0, (bits & 2) != 0};
    EXPECT_TRUE(fits_fp8(32, 48, 64, attributes));
    EXPECT_TRUE(fits_fp8(7, 48, 64, attributes)) << "any number of rows";
    EXPECT_FALSE(fits_fp8(32, 40, 64, attributes));
    EXPECT_FALSE(fits_fp8(32, 48, 40, attributes));
  }
}

}  // namespace
}  // namespace tandem
