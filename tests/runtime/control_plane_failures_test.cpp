// Real processes on the loopback that die, hang, fall silent or fail: all end with one sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/runtime/control_plane_fixture.h"

namespace tandem::control_plane_failures_test {
namespace {

using namespace control_plane_fixture;
using testing::AllOf;
using testing::HasSubstr;

class ControlPlaneFailures : public ControlPlaneFixture {};

TEST_F(ControlPlaneFailures, AMemberThatIsKilledEndsAll) {
  start(0, 4, wait_for_others);
  start(1, 4, wait_for_others);
  start(2, 4, stop_at_task_7);
  start(3, 4, wait_for_others);
  processes_.wait_until_ready(2);
  processes_.send_signal(2, SIGKILL);
  for (const std::size_t rank : {0, 1, 3})
    expect_failure(rank, HasSubstr("rank 2 on " + host() + " ended without a word, last at task " + qkv));
}

TEST_F(ControlPlaneFailures, Rank0ThatIsKilledEndsAll) {
  start(0, 3, stop_at_task_7);
  start(1, 3, wait_for_others);
  start(2, 3, wait_for_others);
  processes_.wait_until_ready(0);
  processes_.send_signal(0, SIGKILL);
  for (const std::size_t rank : {1, 2})
    expect_failure(rank,
                   HasSubstr("rank 0 at 127.0.0.1:" + std::to_string(port_) + " ended without a word, last at task " + qkv));
}

TEST_F(ControlPlaneFailures, AMemberThatHangsEndsAllAndIsEndedItself) {
  ControlOptions options = patient();
  options.timeout = 0.5;
  options.last_resort = 0.1;
  start(0, 3, wait_for_others, options);
  start(1, 3, stop_at_task_7, options);
  start(2, 3, wait_for_others, options);
  const std::string sentence = "rank 1 on " + host() + " has made no progress for 0.5 s at task " + qkv + " while others wait";
  for (const std::size_t rank : {0, 2}) expect_failure(rank, HasSubstr(sentence));
  expect_failure(1, AllOf(HasSubstr(sentence), HasSubstr("rank 1 did not end by itself")));
}

TEST_F(ControlPlaneFailures, Rank0ThatHangsEndsAllAndIsEndedItself) {
  ControlOptions options = patient();
  options.timeout = 0.5;
  options.last_resort = 0.1;
  start(0, 3, stop_at_task_7, options);
  start(1, 3, wait_for_others, options);
  start(2, 3, wait_for_others, options);
  for (const std::size_t rank : {0, 1, 2}) expect_failure(rank, HasSubstr("rank 0 on " + host() + " has made no progress"));
}

TEST_F(ControlPlaneFailures, ToSayWhereOneIsAgainIsNoProgress) {
  ControlOptions options = patient();
  options.timeout = 0.5;
  options.last_resort = 0.1;
  start(0, 2, stop_at_task_7, options);
  const Work repeats = [](ControlPlane& plane, const Ready&) -> std::string {
    meet(plane);
    while (!plane.failure()) {
      plane.progress(8, true);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    throw std::runtime_error(*plane.failure());
  };
  start(1, 2, repeats, options);
  expect_failure(1, HasSubstr("rank 0 on " + host() + " has made no progress"));
}

TEST_F(ControlPlaneFailures, WhoWaitsForEachOtherForTooLongEnds) {
  ControlOptions options = patient();
  options.timeout = 0.5;
  options.last_resort = 0.1;
  start_all(
      2,
      [](ControlPlane& plane, const Ready&) -> std::string {
        plane.progress(7, true);
        for (;;) ::pause();
      },
      options);
  for (const std::size_t rank : {0, 1})
    expect_failure(rank, AllOf(HasSubstr("all processes have waited for each other for 0.5 s"), HasSubstr("at task " + qkv)));
}

TEST_F(ControlPlaneFailures, AMachineThatFallsSilentEndsAll) {
  ControlOptions options = patient();
  options.silence = 2;
  start(0, 3, wait_for_others, options);
  start(1, 3, wait_for_others, options);
  start(2, 3, stop_at_task_7, options);
  processes_.wait_until_ready(2);
  processes_.send_signal(2, SIGSTOP);
  for (const std::size_t rank : {0, 1})
    expect_failure(rank, HasSubstr("rank 2 on " + host() + " has not been heard of for 2 s, last at task " + qkv));
}

TEST_F(ControlPlaneFailures, Rank0ThatFallsSilentEndsAll) {
  ControlOptions options = patient();
  options.silence = 2;
  start(0, 3, stop_at_task_7, options);
  start(1, 3, wait_for_others, options);
  start(2, 3, wait_for_others, options);
  processes_.wait_until_ready(0);
  processes_.send_signal(0, SIGSTOP);
  for (const std::size_t rank : {1, 2})
    expect_failure(rank,
                   AllOf(HasSubstr("rank 0 at 127.0.0.1"), HasSubstr("has not been heard of for 2 s, last at task " + qkv)));
}

// What it has to read and its own timer are both due when it goes on: it ends once, with what the others ended with.
TEST_F(ControlPlaneFailures, AStoppedProcessThatGoesOnBlamesNobodyElse) {
  for (const std::uint32_t stopped : {0U, 2U}) {
    SCOPED_TRACE(stopped);
    port_ = free_port();
    Processes processes;
    ControlOptions options = patient();
    options.silence = 2;
    options.last_resort = 5;  // longer than silence
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      processes.start([=, port = port_](const Ready& ready) {
        ControlPlane plane(launch(rank, 3, port), options);
        return rank == stopped ? stop_at_task_7(plane, ready) : wait_for_others(plane, ready);
      });
    }
    processes.wait_until_ready(stopped);
    processes.send_signal(stopped, SIGSTOP);
    for (const std::size_t rank : {0, 1, 2})
      if (rank != stopped) {
        EXPECT_EQ(processes.outcome(rank).exit_code, 1);
      }
    processes.send_signal(stopped, SIGCONT);
    const Processes::Outcome outcome = processes.outcome(stopped);
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_EQ(outcome.exit_code, 1);
    const std::string who = stopped == 0 ? "rank 0 at 127.0.0.1:" + std::to_string(port_) : "rank 2 on " + host();
    EXPECT_THAT(outcome.text, AllOf(HasSubstr(who + " has not been heard of for 2 s, last at task " + qkv),
                                    HasSubstr("did not end by itself")));
  }
}

TEST_F(ControlPlaneFailures, AnErrorReachesAll) {
  for (const std::uint32_t culprit : {0U, 2U}) {
    SCOPED_TRACE(culprit);
    port_ = free_port();
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      start(rank, 3, [=](ControlPlane& plane, const Ready& ready) -> std::string {
        if (rank != culprit) return wait_for_others(plane, ready);
        plane.run([&] {
          plane.progress(7, false);
          meet(plane);
          throw std::logic_error("out of memory");
        });
        return "nothing happened";
      });
    }
    const std::string sentence =
        "rank " + std::to_string(culprit) + " on " + host() + " failed at task " + qkv + ": out of memory";
    for (const std::size_t rank : {0, 1, 2}) expect_failure(rank + (culprit == 0 ? 0 : 3), testing::StrEq(sentence));
  }
}

TEST_F(ControlPlaneFailures, LeavingEarlyEndsAll) {
  for (const std::uint32_t culprit : {0U, 1U}) {
    SCOPED_TRACE(culprit);
    port_ = free_port();
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      start(rank, 2, [=](ControlPlane& plane, const Ready& ready) -> std::string {
        if (rank != culprit) return wait_for_others(plane, ready);
        meet(plane);
        return "";
      });
    }
    expect_failure((culprit == 0 ? 1 : 2), HasSubstr("rank " + std::to_string(culprit) + " on " + host() + " ended"));
  }
}

TEST_F(ControlPlaneFailures, FailureCallsBack) {
  for (const bool late : {false, true}) {
    SCOPED_TRACE(late);
    port_ = free_port();
    Processes processes;
    const auto run = [&](std::uint32_t rank, const Work& work) {
      processes.start([=, port = port_](const Ready& ready) {
        ControlPlane plane(launch(rank, 2, port), patient());
        return work(plane, ready);
      });
    };
    run(0, [late](ControlPlane& plane, const Ready&) {
      std::promise<std::string> told;
      const auto tell = [&](const std::string& sentence) { told.set_value(sentence); };
      if (!late) plane.on_failure(tell);
      meet(plane);
      EXPECT_THROW(plane.barrier(), std::runtime_error);
      if (late) plane.on_failure(tell);
      std::string sentence = told.get_future().get();
      plane.on_failure({});
      return sentence;
    });
    run(1, stop_at_task_7);
    processes.wait_until_ready(1);
    processes.send_signal(1, SIGKILL);
    const Processes::Outcome outcome = processes.outcome(0);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.text, HasSubstr("rank 1 on "));
  }
}

}  // namespace
}  // namespace tandem::control_plane_failures_test
