// Which algorithm a product gets, with a library in cuBLASLt's place that has a clock of its own.
#include "runtime/cuda/module/cublas_lt.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/cublas/fake_cublas_lt.h"

namespace tandem::cublas_lt_test {
namespace {

class CublasLtChoice : public testing::Test {
 protected:
  std::vector<std::byte> workspace_{std::size_t{32} << 20};
  Queue queue_{.scratch = workspace_.data(), .scratch_bytes = workspace_.size()};
  Matmul product_{.product = {.size = {64, 64, 64}, .first = {}, .second = {}, .result = {}, .count = 1}};
  CublasLt cublas_{0};

  void SetUp() override { fake() = {.advised = {0, 1, 2}, .failing = {}, .milliseconds = {3, 1, 2}, .ran = {}}; }

  /// The algorithm that a run takes.
  int chosen() {
    cublas_.run(queue_, product_, {});
    return fake().ran.back();
  }
};

TEST_F(CublasLtChoice, IsTheFastestOfTheAdvised) {
  EXPECT_EQ(chosen(), 0) << "not tried yet: the first";
  cublas_.choose(queue_, product_, {});
  EXPECT_EQ(chosen(), 1);
}

// What takes long is timed twice, what is short ten times, beside a run that loads the kernel and one that tells which it is.
TEST_F(CublasLtChoice, TakesFewRunsOfALongProduct) {
  for (const auto& [ten_products, runs] : {std::pair(100.0F, CublasLt::fewest_trials), {0.1F, 12}}) {
    fake().milliseconds = {ten_products, ten_products, ten_products};
    fake().ran.clear();
    cublas_.forget();
    cublas_.choose(queue_, product_, {});
    EXPECT_EQ(fake().ran.size(), fake().advised.size() * static_cast<std::size_t>(runs));
  }
  fake().advised.assign(20, 0);
  fake().ran.clear();
  cublas_.forget();
  cublas_.choose(queue_, product_, {});
  EXPECT_EQ(fake().ran.size(), static_cast<std::size_t>(CublasLt::most_algorithms) * 12);
}

TEST_F(CublasLtChoice, PassesOverAnAlgorithmThatFails) {
  fake().failing = {1};
  testing::internal::CaptureStderr();
  cublas_.choose(queue_, product_, {});
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "tandem: an algorithm of cuBLASLt for 64 x 64 x 64 in fp32 to fp32 is passed over: cublasLtMatmul: execution failed\n");
  EXPECT_EQ(chosen(), 2);
  cublas_.forget();
  testing::internal::CaptureStderr();
  cublas_.choose(queue_, product_, {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "said once";
  fake().failing = {0};
  cublas_.forget();
  cublas_.choose(queue_, product_, {});
  EXPECT_EQ(chosen(), 1) << "the heuristic's first is passed over, too";
}

TEST_F(CublasLtChoice, IsNoneWhereAllFail) {
  fake().failing = {0, 1, 2};
  EXPECT_TRUE(cublas_.supports(product_, {}));
  cublas_.choose(queue_, product_, {});
  EXPECT_FALSE(cublas_.supports(product_, {}));
  EXPECT_THROW(cublas_.run(queue_, product_, {}), std::runtime_error);
}

TEST_F(CublasLtChoice, IsNoneWhereTheHeuristicKnowsNone) {
  fake().advised.clear();
  EXPECT_FALSE(cublas_.supports(product_, {}));
  EXPECT_NO_THROW(cublas_.choose(queue_, product_, {}));
  EXPECT_TRUE(fake().ran.empty());
}

TEST_F(CublasLtChoice, LeavesNearlyEqualTimesToTheHeuristic) {
  fake().milliseconds = {1, 0.99F, 1.01F};
  cublas_.choose(queue_, product_, {});
  EXPECT_EQ(chosen(), 0);
}

}  // namespace
}  // namespace tandem::cublas_lt_test
