// What a process of Tandem may take, and who says so.
#include "runtime/base/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <new>
#include <vector>

namespace tandem::memory_limit_test {
namespace {

/// In a process of its own, as a limit stays: whether `holds` holds there.
bool in_child(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(holds() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(MemoryLimit, IsWhatWasSaid) {
  EXPECT_TRUE(in_child([] {
    limit_memory(123'456'789);
    return memory_limit() == 123'456'789;
  }));
}

TEST(MemoryLimit, IsHandedOnAndMayBecomeLess) {
  EXPECT_TRUE(in_child([] {
    limit_memory(2'000'000'000);
    return in_child([] { return memory_limit() == 2'000'000'000; }) && in_child([] {
             limit_memory(1'000'000'000);
             return memory_limit() == 1'000'000'000;
           });
  }));
}

TEST(MemoryLimit, IsWhatIsFreeWhereNobodySays) {
  EXPECT_GT(memory_limit(), 0);
  EXPECT_LT(memory_limit(), Bytes{1} << 50);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(MemoryLimit, EndsAnAllocationBeyondItWithASentence) {
  EXPECT_TRUE(in_child([] {
    limit_memory(500'000'000);
    enforce_memory_limit();
    try {
      const std::vector<char> fits(100'000'000, 'x');
      const std::vector<char> does_not(600'000'000, 'x');
    } catch (const std::bad_alloc&) {
      return beyond_memory_limit_sentence().starts_with("needs more memory than the 0.50 GB");
    }
    return false;
  }));
}
#endif

TEST(MemoryLimit, ReadsFreeMemory) {
  EXPECT_EQ(available_in("MemTotal:       24684132 kB\nMemFree:        11450000 kB\nMemAvailable:   20854000 kB\n"),
            Bytes{20'854'000} * 1024);
  EXPECT_EQ(available_in(""), 0);
  EXPECT_EQ(available_in("MemAvailable: lots\n"), 0);
}

// A group may use `limit`; what it holds of files that nobody used lately is given back on demand.
TEST(MemoryLimit, ReadsWhatAControlGroupLeaves) {
  EXPECT_EQ(left_in_group("1000\n", "600\n", "anon 500\ninactive_file 100\n"), 500);
  EXPECT_EQ(left_in_group("1000\n", "600\n", ""), 400);
  EXPECT_EQ(left_in_group("1000\n", "1600\n", ""), 0);
  EXPECT_LT(left_in_group("max\n", "600\n", ""), 0);
  EXPECT_LT(left_in_group("", "", ""), 0);
}

}  // namespace
}  // namespace tandem::memory_limit_test
