#include "runtime/base/countdowns.h"

#include <gtest/gtest.h>

namespace tandem::countdowns_test {
namespace {

TEST(Countdowns, EndAfterAsManyAsWereAddedHoweverMany) {
  for (const std::size_t count : {1, 2, 255, 256, 257, 511, 512, 513, 1000}) {
    Countdowns countdowns(3);
    EXPECT_TRUE(countdowns.is_zero(1));
    for (std::size_t i = 0; i < count; ++i) {
      countdowns.add_one(1);
      EXPECT_FALSE(countdowns.is_zero(1)) << i << " of " << count;
    }
    EXPECT_TRUE(countdowns.is_zero(0));
    EXPECT_TRUE(countdowns.is_zero(2));
    for (std::size_t left = count; left-- > 0;) {
      EXPECT_EQ(countdowns.count_down(1), left == 0) << left << " of " << count;
      EXPECT_EQ(countdowns.is_zero(1), left == 0) << left << " of " << count;
    }
  }
}

}  // namespace
}  // namespace tandem::countdowns_test
