#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "runtime/cuda/module/cublas_lt.h"
#include "runtime/cuda/multiplied_types.h"

namespace tandem::studies::gemm_test {
namespace {

constexpr auto f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16, f8 = DType::f8;

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
  for (const DType type : {f32, bf16, f16, f8})
    for (const DType result : {type == f8 ? bf16 : type, f32})
      EXPECT_EQ(multiplied_types(type, type, result, true), (MultipliedTypes{type, result}));
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

// A trial has memory of its own: all that it is given of the operands is their types.
TEST(Gemm, IsPreparedWithoutItsOperands) {
  std::vector<std::byte> workspace(CublasLt::of_this_device().workspace_bytes());
  Queue queue{.scratch = workspace.data(), .scratch_bytes = workspace.size()};
  const GroupedGemmAttributes attributes{.transpose_a = true, .accumulate = true, .rows = {16, 16, 32, 0}};
  for (const DType type : {f32, bf16, f8}) {
    const std::vector<OperandType> operands{{Shape(64, 48), type}, {Shape(64, 32), type}, {Shape(4 * 48, 32), f32}};
    EXPECT_NO_THROW(device_operation(OpKind::grouped_gemm).prepare(queue, operands, attributes));
  }
}

}  // namespace
}  // namespace tandem::studies::gemm_test
