#include "sim/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace tandem {
namespace {

using testing::HasSubstr;

template <typename Work>
std::string sentence_of(Work work) {
  try {
    run_in_child(work);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(RunInChild, SharedMemoryComesBackAndTheRestDoesNot) {
  SharedDoubles shared(3);
  double unshared = 1;
  run_in_child([&] {
    shared.values()[1] = 4.5;
    unshared = 2;
  });
  EXPECT_THAT(std::vector<double>(shared.values().begin(), shared.values().end()), testing::ElementsAre(0, 4.5, 0));
  EXPECT_EQ(unshared, 1);
}

TEST(RunInChild, PeakMemoryIsTheChilds) {
  constexpr std::size_t size = 64 << 20;
  const Bytes small = run_in_child([] {});
  const Bytes large = run_in_child([] {
    std::vector<char> touched(size, 1);
    if (touched[size / 2] != 1) std::abort();
  });
  EXPECT_GT(small, 0);
  EXPECT_GE(large - small, Bytes{size} * 9 / 10);
}

TEST(RunInChild, ReportsTheSentenceOfAnException) {
  EXPECT_EQ(sentence_of([] { throw std::logic_error("a buffer is missing"); }), "a buffer is missing");
  EXPECT_EQ(sentence_of([] { throw 7; }), "unknown exception");
}

TEST(RunInChild, ReportsTheSignalThatKilledTheChild) {
  EXPECT_THAT(sentence_of([] { raise(SIGTERM); }), HasSubstr("killed by signal 15 (Terminated)"));
  EXPECT_THAT(sentence_of([] { raise(SIGKILL); }), HasSubstr("out of memory"));
}

TEST(RunInChild, ReportsAnExitCode) {
  EXPECT_THAT(sentence_of([] { _exit(9); }), HasSubstr("exit code 9"));
}

TEST(RunInChild, LeavesTheParentsExitHandlersAlone) {
  static SharedDoubles calls(1);
  std::atexit([] { calls.values()[0] += 1; });
  run_in_child([] {});
  EXPECT_EQ(calls.values()[0], 0);
}

TEST(SharedDoubles, MayBeEmpty) { EXPECT_TRUE(SharedDoubles(0).values().empty()); }

}  // namespace
}  // namespace tandem
