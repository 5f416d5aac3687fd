#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "runtime/launch/control_plane.h"
#include "tests/runtime/loopback_socket.h"
#include "tests/runtime/processes.h"

/// Processes of a run on the loopback, for the tests of the control plane.
namespace tandem::control_plane_fixture {

using Ready = Processes::Ready;
using Work = std::function<std::string(ControlPlane&, const Ready&)>;

inline const std::string shared_secret = "what only the processes of this test know";
inline const std::string qkv = "'qkv' (7)";

/// Time limits that no test should reach, on a busy machine either; a test that waits for one shortens that one.
inline ControlOptions patient() {
  ControlOptions options{
      .join_timeout = 50, .timeout = 50, .silence = 50, .report_interval = 0.02, .handshake = 50, .last_resort = 50};
  options.task_name = [](std::uint32_t task) { return std::string(task == 7 ? "qkv" : "another"); };
  return options;
}

inline Launch launch(std::uint32_t rank, std::uint32_t size, std::uint16_t port) {
  return {.rank = rank,
          .size = size,
          .local_rank = rank,
          .host = "127.0.0.1",
          .port = port,
          .session = "a test",
          .secret = shared_secret};
}

inline std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

class ControlPlaneFixture : public testing::Test {
 protected:
  std::uint16_t port_ = free_port();
  Processes processes_;

  void start(std::uint32_t rank, std::uint32_t size, const Work& work, const ControlOptions& options = patient()) {
    processes_.start([=, port = port_](const Ready& ready) {
      ControlPlane plane(launch(rank, size, port), options);
      return work(plane, ready);
    });
  }

  void start_all(std::uint32_t size, const Work& work, const ControlOptions& options = patient()) {
    for (std::uint32_t rank = 0; rank < size; ++rank) start(rank, size, work, options);
  }

  void expect_failure(std::size_t process, const testing::Matcher<std::string>& sentence) {
    const Processes::Outcome outcome = processes_.outcome(process);
    EXPECT_EQ(outcome.exit_code, 1) << "process " << process << ", signal " << outcome.signal;
    EXPECT_THAT(outcome.text, sentence) << "process " << process;
  }
};

/// Two barriers, after which rank 0 knows at which task each rank is, and each rank at which task rank 0 is.
inline void meet(ControlPlane& plane) {
  plane.barrier();
  plane.barrier();
}

/// What an innocent process does: it goes on to a barrier and waits there.
inline std::string wait_for_others(ControlPlane& plane, const Ready&) {
  plane.progress(8, true);
  meet(plane);
  plane.barrier();
  plane.leave();
  return "nothing happened";
}

[[noreturn]] inline std::string stop_at_task_7(ControlPlane& plane, const Ready& ready) {
  plane.progress(7, false);
  meet(plane);
  ready();
  for (;;) ::pause();
}

}  // namespace tandem::control_plane_fixture
