#include "sim/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/base/memory_limit.h"

namespace tandem::sim::child_process_test {
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

TEST(RunInChild, WhatWaitsToBeWrittenIsWrittenOnce) {
  std::FILE* file = std::tmpfile();
  std::fputs("once", file);
  run_in_child([] { std::fflush(nullptr); });
  std::fflush(file);
  EXPECT_EQ(std::ftell(file), 4);
  EXPECT_EQ(lseek(fileno(file), 0, SEEK_END), 4);
  std::fclose(file);
}

TEST(ChildProcess, TakesAsMuchMemoryAsItIsToldAndSoDoItsChildren) {
  constexpr Bytes told = 1'000'000'000;
  const auto check = [] {
    if (memory_limit() != told) throw std::logic_error("it may take something else");
  };
  const auto check_both = [&] {
    check();
    run_in_child(check);
  };
  EXPECT_NO_THROW(ChildProcess(check_both, told).wait());
}

TEST(ChildProcess, SeveralRunAtATimeAndEachIsWaitedFor) {
  SharedDoubles met(2);
  const auto meet = [&](std::size_t mine, std::size_t other) {
    return [&met, mine, other] {
      volatile double* values = met.values().data();
      values[mine] = 1;
      while (values[other] == 0) usleep(1000);
    };
  };
  ChildProcess first(meet(0, 1)), second(meet(1, 0));
  EXPECT_GT(second.wait(), 0);
  EXPECT_GT(first.wait(), 0);
}

TEST(ChildProcess, EndsWithItsObject) {
  SharedDoubles shared(1);
  volatile double* pid = shared.values().data();
  {
    ChildProcess child([&] {
      *pid = getpid();
      for (;;) pause();
    });
    while (*pid == 0) usleep(1000);
  }
  EXPECT_EQ(kill(static_cast<pid_t>(*pid), 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(RunInChild, ParentWorksMeanwhile) {
  SharedCounter from_parent, from_child;
  run_in_child(
      [&] {
        while (from_parent.value() < 3) continue;
        from_child.value() = 5;
      },
      [&] { ++from_parent.value(); });
  EXPECT_EQ(from_child.value(), 5U);
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
}  // namespace tandem::sim::child_process_test
