#include "runtime/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tandem::parallel_test {
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

TEST_F(Parallel, DoesOneThingBesideAnother) {
  for (const std::size_t threads : {1, 2}) {
    limit_threads(threads);
    std::thread::id of_here, of_beside;
    do_beside([&] { of_here = std::this_thread::get_id(); }, [&] { of_beside = std::this_thread::get_id(); });
    EXPECT_EQ(of_here, std::this_thread::get_id());
    EXPECT_NE(of_beside, std::thread::id());
    if (threads == 1) {
      EXPECT_EQ(of_beside, of_here);
    }
  }
  limit_threads(2);
  std::atomic<int> there = 0;
  const auto meet = [&] {
    ++there;
    while (there < 2) std::this_thread::yield();
  };
  do_beside(meet, meet);  // one alone would wait forever
  bool done = false;
  EXPECT_THROW(do_beside([] { throw std::runtime_error("here"); }, [&] { done = true; }), std::runtime_error);
  EXPECT_TRUE(done);
  EXPECT_THROW(do_beside([] {}, [] { throw std::logic_error("beside"); }), std::logic_error);
}

TEST_F(Parallel, KeptThreadsWorkAgain) {
  limit_threads(3);
  keep_threads();
  std::mutex mutex;
  std::set<std::thread::id> workers;
  for (int time = 0; time < 50; ++time) {
    std::atomic<int> there = 0;
    in_parallel(3, [&](std::size_t) {
      ++there;
      while (there < 3) std::this_thread::yield();
      const std::scoped_lock lock(mutex);
      workers.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(workers.size(), 3U);
  end_kept_threads();
}

TEST_F(Parallel, KeptThreadsThatWorkHaveOthersStarted) {
  limit_threads(3);
  keep_threads();
  std::atomic<std::size_t> sum = 0;
  in_parallel(6, [&](std::size_t) { in_parallel(20, [&](std::size_t number) { sum += number; }); });
  EXPECT_EQ(sum, 6U * 190U);
  limit_threads(5);  // more than are kept
  in_parallel(100, [&](std::size_t number) { sum += number; });
  EXPECT_EQ(sum, 6U * 190U + 4950U);
  EXPECT_THROW(in_parallel(9, [](std::size_t) { throw std::runtime_error("all"); }), std::runtime_error);
  end_kept_threads();
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take address space themselves
TEST_F(Parallel, DoesTheWorkWhereTheSystemGivesNoThreads) {
  const auto work_without_threads = [] {
    limit_threads(4);
    const rlimit nothing_more{0, 0};
    ::setrlimit(RLIMIT_AS, &nothing_more);
    std::size_t sum = 0;
    in_parallel(20, [&](std::size_t number) { sum += number; });
    std::exit(sum == 190 ? 0 : 1);
  };
  EXPECT_EXIT(work_without_threads(), testing::ExitedWithCode(0), "");
}
#endif

TEST_F(Parallel, JoinsWhatIsMadeInOrderAndOneAtATime) {
  for (const std::size_t threads : {1, 2, 5}) {
    limit_threads(threads);
    for (const std::size_t places : {1, 2, 7}) {
      std::vector<std::size_t> at(places, 0), joined, expected(100);
      std::vector<int> taken(places, 0);
      std::atomic<int> joining = 0;
      std::iota(expected.begin(), expected.end(), 1);
      const auto make = [&](std::size_t number, std::size_t place) {
        EXPECT_EQ(taken[place]++, 0);
        if (number % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        at[place] = number + 1;
      };
      const auto join = [&](std::size_t number, std::size_t place) {
        EXPECT_EQ(++joining, 1);
        EXPECT_EQ(at[place], number + 1);
        joined.push_back(at[place]);
        --joining;
        --taken[place];
      };
      make_and_join(100, places, make, join);
      EXPECT_EQ(joined, expected) << threads << " threads, " << places << " places";
    }
  }
  make_and_join(
      0, 1, [](auto...) { FAIL(); }, [](auto...) { FAIL(); });
}

TEST_F(Parallel, MakesAtTheSameTime) {
  limit_threads(3);
  std::atomic<int> there = 0;
  const auto wait_for_others = [&](auto...) {
    ++there;
    while (there < 3) std::this_thread::yield();
  };
  make_and_join(3, 4, wait_for_others, [](auto...) {});
  EXPECT_EQ(there, 3);
}

TEST_F(Parallel, JoinsNothingAfterTheFirstNumberThatThrows) {
  for (const std::size_t threads : {1, 2, 5}) {
    limit_threads(threads);
    for (const bool where_made : {true, false}) {
      std::size_t joined = 0;
      const auto fail = [](std::size_t number) { throw std::runtime_error(std::to_string(number)); };
      const auto make = [&](std::size_t number, auto) {
        if (number == 40) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (number > 40 || (number == 40 && where_made)) fail(number);
      };
      const auto join = [&](std::size_t number, auto) {
        if (number == 40) fail(number);
        ++joined;
      };
      try {
        make_and_join(100, threads + 1, make, join);
        FAIL();
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "40");
      }
      EXPECT_EQ(joined, 40);
    }
  }
}

}  // namespace
}  // namespace tandem::parallel_test
