#include "runtime/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tandem {
namespace {

class Parallel : public testing::Test {
 protected:
  void TearDown() override { limit_threads(before_); }

 private:
  std::size_t before_ = most_threads();
};

TEST_F(Parallel, DoesEachNumberOnce) {
  for (const std::size_t threads : {1, 2, 5, 16}) {
    limit_threads(threads);
    for (const std::size_t count : {0, 1, 3, 1000}) {
      std::vector<int> done(count, 0);
      in_parallel(count, [&](std::size_t number) { ++done[number]; });
      EXPECT_EQ(done, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
}

TEST_F(Parallel, WorksAtTheSameTime) {
  limit_threads(3);
  std::atomic<int> there = 0;
  // Each waits for the others: fewer threads would wait forever.
  in_parallel(3, [&](std::size_t) {
    ++there;
    while (there < 3) std::this_thread::yield();
  });
  EXPECT_EQ(there, 3);
}

TEST_F(Parallel, StartsNoThreadWhereOneIsAllowed) {
  limit_threads(0);
  EXPECT_EQ(most_threads(), 1);
  in_parallel(20, [caller = std::this_thread::get_id()](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST_F(Parallel, ThrowsWhatTheLowestNumberThrewWhenAllIsDone) {
  limit_threads(4);
  std::atomic<std::size_t> sum = 0;
  const auto work = [&](std::size_t number) {
    sum += number;
    if (number % 10 == 7) throw std::runtime_error(std::to_string(number));
  };
  try {
    in_parallel(100, work);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
  EXPECT_EQ(sum, 99 * 100 / 2);
}

}  // namespace
}  // namespace tandem
