// Real processes on the loopback: they join, exchange, die, hang, lie about who they are, and all end with one sentence.
#include "runtime/launch/control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/launch/message.h"
#include "tests/runtime/loopback_socket.h"
#include "tests/runtime/processes.h"

namespace tandem::control_plane_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ready = Processes::Ready;
using Work = std::function<std::string(ControlPlane&, const Ready&)>;

const std::string qkv = "'qkv' (7)";

/// Long enough for a machine that is busy with other things, short where the test waits for it to pass.
ControlOptions patient() {
  ControlOptions options{.join_timeout = 50, .timeout = 50, .silence = 50, .report_interval = 0.02, .last_resort = 50};
  options.task_name = [](std::uint32_t task) { return std::string(task == 7 ? "qkv" : "another"); };
  return options;
}

Launch launch(std::uint32_t rank, std::uint32_t size, std::uint16_t port) {
  return {.rank = rank, .size = size, .local_rank = rank, .host = "127.0.0.1", .port = port, .session = "a test"};
}

std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

class ControlPlaneTest : public testing::Test {
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

/// So that rank 0 knows where all are, and all where rank 0 is.
void meet(ControlPlane& plane) {
  plane.barrier();
  plane.barrier();
}

/// What a process does that is not to blame.
std::string wait_for_others(ControlPlane& plane, const Ready&) {
  plane.progress(8, true);
  meet(plane);
  plane.barrier();
  plane.leave();
  return "nothing happened";
}

[[noreturn]] std::string stop_at_task_7(ControlPlane& plane, const Ready& ready) {
  plane.progress(7, false);
  meet(plane);
  ready();
  for (;;) ::pause();
}

TEST_F(ControlPlaneTest, CarriesBytesBothWays) {
  start_all(4, [](ControlPlane& plane, const Ready&) {
    const std::string id = plane.broadcast("from whoever is rank 0");
    plane.agree("DAG file", "the same");
    plane.barrier();
    std::string text = id + ":";
    for (const std::string& part : plane.gather(std::string(3, '\0') + "part")) text += std::to_string(part.size()) + ",";
    plane.leave();
    return text;
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.text, std::string("from whoever is rank 0:") + (rank == 0 ? "7,7,7,7," : ""));
  }
}

TEST_F(ControlPlaneTest, BroadcastsRank0sBytesAndGathersByRank) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    start(rank, 3, [rank](ControlPlane& plane, const Ready&) {
      std::string text = plane.broadcast("rank " + std::to_string(rank));
      for (int round = 0; round < 50; ++round)
        for (const std::string& part : plane.gather(std::string(std::size_t{1} << 16, static_cast<char>('a' + rank))))
          text += part[round];
      plane.leave();
      return text;
    });
  }
  std::string gathered;
  for (int round = 0; round < 50; ++round) gathered += "abc";
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(processes_.outcome(rank).text, "rank 0" + (rank == 0 ? gathered : ""));
}

TEST_F(ControlPlaneTest, ARunOfOneProcessOpensNoPort) {
  ControlPlane plane(Launch{});
  EXPECT_EQ(plane.broadcast("x"), "x");
  EXPECT_EQ(plane.gather("x"), std::vector<std::string>{"x"});
  plane.barrier();
  plane.agree("file", "x");
  plane.progress(3, true);
  plane.fail("x");
  plane.leave();
  EXPECT_EQ(plane.failure(), std::nullopt);
}

TEST_F(ControlPlaneTest, AMemberThatIsKilledEndsAll) {
  start(0, 4, wait_for_others);
  start(1, 4, wait_for_others);
  start(2, 4, stop_at_task_7);
  start(3, 4, wait_for_others);
  processes_.wait_until_ready(2);
  processes_.send_signal(2, SIGKILL);
  for (const std::size_t rank : {0, 1, 3})
    expect_failure(rank, HasSubstr("rank 2 on " + host() + " ended without a word, last at task " + qkv));
}

TEST_F(ControlPlaneTest, Rank0ThatIsKilledEndsAll) {
  start(0, 3, stop_at_task_7);
  start(1, 3, wait_for_others);
  start(2, 3, wait_for_others);
  processes_.wait_until_ready(0);
  processes_.send_signal(0, SIGKILL);
  for (const std::size_t rank : {1, 2})
    expect_failure(rank,
                   HasSubstr("rank 0 at 127.0.0.1:" + std::to_string(port_) + " ended without a word, last at task " + qkv));
}

TEST_F(ControlPlaneTest, AMemberThatHangsEndsAllAndIsEndedItself) {
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

TEST_F(ControlPlaneTest, Rank0ThatHangsEndsAllAndIsEndedItself) {
  ControlOptions options = patient();
  options.timeout = 0.5;
  options.last_resort = 0.1;
  start(0, 3, stop_at_task_7, options);
  start(1, 3, wait_for_others, options);
  start(2, 3, wait_for_others, options);
  for (const std::size_t rank : {0, 1, 2}) expect_failure(rank, HasSubstr("rank 0 on " + host() + " has made no progress"));
}

TEST_F(ControlPlaneTest, ToSayWhereOneIsAgainIsNoProgress) {
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

TEST_F(ControlPlaneTest, WhoWaitsForEachOtherForTooLongEnds) {
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

TEST_F(ControlPlaneTest, AMachineThatFallsSilentEndsAll) {
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

TEST_F(ControlPlaneTest, Rank0ThatFallsSilentEndsAll) {
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

TEST_F(ControlPlaneTest, AnErrorReachesAll) {
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

TEST_F(ControlPlaneTest, Rank0ListensAtAllAddressesUnlessItIsOnTheLoopback) {
  for (const char* const name : {"0.0.0.0", "localhost", "::1"}) {
    SCOPED_TRACE(name);
    Processes processes;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      processes.start([=, port = port_](const Ready&) {
        Launch named = launch(rank, 2, port);
        named.host = name;
        ControlPlane plane(named, patient());
        plane.leave();
        return std::string("left");
      });
    }
    const Processes::Outcome outcome = processes.outcome(0);
    EXPECT_TRUE(outcome.text == "left" || (name == std::string("::1") && outcome.exit_code == 1)) << outcome.text;
    if (outcome.text == "left") {
      EXPECT_EQ(processes.outcome(1).text, "left");
    }
  }
}

TEST_F(ControlPlaneTest, RunLeavesWithAll) {
  start_all(2, [](ControlPlane& plane, const Ready&) -> std::string {
    plane.run([&] { plane.barrier(); });
    return "left";
  });
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "left");
}

TEST_F(ControlPlaneTest, LeavingEarlyEndsAll) {
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

TEST_F(ControlPlaneTest, FailureCallsBack) {
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
      const std::string sentence = told.get_future().get();
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

TEST_F(ControlPlaneTest, ADifferentDigestEndsAll) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    start(rank, 4, [rank](ControlPlane& plane, const Ready&) -> std::string {
      plane.agree("scenario", "the same");
      plane.agree("DAG file", rank == 0 || rank == 2 ? "abc" : "abd");
      return "nothing happened";
    });
  }
  for (const std::size_t rank : {0, 1, 2, 3})
    expect_failure(rank, HasSubstr("ranks 1, 3 have another DAG file than rank 0, the first of them on " + host()));
}

TEST_F(ControlPlaneTest, DifferentOperationsEndAll) {
  start(0, 2, [](ControlPlane& plane, const Ready&) { return plane.broadcast("x"); });
  start(1, 2, [](ControlPlane& plane, const Ready&) { return std::to_string(plane.gather("x").size()); });
  for (const std::size_t rank : {0, 1}) expect_failure(rank, AllOf(HasSubstr("'broadcast'"), HasSubstr("'gather'")));
}

TEST_F(ControlPlaneTest, NamesTheRanksThatDoNotCome) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  start(0, 5, wait_for_others, options);
  start(2, 5, wait_for_others);
  const std::string sentence = "ranks 1, 3, 4 of 5 did not come to 127.0.0.1:" + std::to_string(port_) + " within 1 s";
  // The second may come when rank 0 has gone, on a machine that is very busy.
  expect_failure(0, HasSubstr("of 5 did not come to"));
  expect_failure(1, testing::AnyOf(HasSubstr(sentence), HasSubstr("could not be joined")));
}

TEST_F(ControlPlaneTest, Rank0ThatDoesNotComeIsNamed) {
  ControlOptions options = patient();
  options.join_timeout = 0.2;
  start(1, 2, wait_for_others, options);
  expect_failure(0, AllOf(HasSubstr("rank 0 at 127.0.0.1:" + std::to_string(port_) + " could not be joined within 0.2 s"),
                          HasSubstr("Connection refused")));
}

TEST_F(ControlPlaneTest, Rank0MayComeLast) {
  const auto say_when_started = [this](std::uint32_t rank) {
    processes_.start([=, port = port_](const Ready& ready) {
      ready();
      ControlPlane plane(launch(rank, 3, port), patient());
      plane.leave();
      return std::string("left");
    });
  };
  for (const std::uint32_t rank : {2U, 1U}) say_when_started(rank);
  for (const std::size_t process : {0, 1}) processes_.wait_until_ready(process);
  say_when_started(0);
  for (const std::size_t process : {0, 1, 2}) EXPECT_EQ(processes_.outcome(process).text, "left");
}

TEST_F(ControlPlaneTest, TwoProcessesOfOneRankEndAll) {
  for (const std::uint32_t rank : {0U, 1U, 1U}) start(rank, 3, wait_for_others);
  // Which of the two is refused, is not known; that it is told why, is.
  for (const std::size_t process : {0, 1, 2})
    expect_failure(process, HasSubstr("two processes claim to be rank 1, on " + host() + " and on " + host()));
}

TEST_F(ControlPlaneTest, ProcessesOfAnotherSizeEndAll) {
  start(0, 3, wait_for_others);
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1})
    expect_failure(process, AllOf(HasSubstr("rank 1 on " + host() + " expects 2 processes"), HasSubstr("expects 3")));
}

TEST_F(ControlPlaneTest, APortThatIsTakenIsNamed) {
  const LoopbackSocket taken = LoopbackSocket::listening(port_);
  start(0, 2, wait_for_others);
  expect_failure(0, AllOf(HasSubstr("rank 0 cannot listen at port " + std::to_string(port_)), HasSubstr("TANDEM_PORT")));
}

TEST_F(ControlPlaneTest, SomethingElseAtThePortIsNoRank0) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  const LoopbackSocket other = LoopbackSocket::listening(port_);
  start(1, 2, wait_for_others, options);
  other.accepted().write("220 mail.example ready\r\n");
  expect_failure(0, AllOf(HasSubstr("rank 0 at 127.0.0.1:" + std::to_string(port_) + " could not be joined within 1 s"),
                          HasSubstr("what listens there")));
}

TEST_F(ControlPlaneTest, AnotherRunsProcessIsRefused) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  start(0, 2, wait_for_others);
  Launch other = launch(1, 2, port_);
  other.session = "another";
  processes_.start([=](const Ready&) -> std::string {
    ControlPlane plane(other, options);
    return "joined";
  });
  expect_failure(1, HasSubstr("could not be joined within 1 s"));
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 2}) EXPECT_EQ(processes_.outcome(process).text, "nothing happened");
}

std::string framed(MessageKind kind, std::uint64_t length, const std::string& payload) {
  const MessageHeader header{.kind = static_cast<std::uint32_t>(kind), .length = length};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
}

TEST_F(ControlPlaneTest, StrangersAreIgnored) {
  start(0, 2, wait_for_others);
  const std::string endless = framed(MessageKind::hello, std::uint64_t{1} << 60, "");
  const std::string no_hello = framed(MessageKind::barrier, 0, "");
  const std::string short_hello = framed(MessageKind::hello, 8, std::string(8, '\xFF'));
  const std::string unknown = framed(static_cast<MessageKind>(99), 0, "");
  for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n\r\n"), endless, no_hello, short_hello, unknown}) {
    const LoopbackSocket stranger = LoopbackSocket::connected(port_);
    stranger.write(garbage);
    EXPECT_TRUE(stranger.is_closed_by_peer());
  }
  const LoopbackSocket silent = LoopbackSocket::connected(port_);
  const LoopbackSocket half = LoopbackSocket::connected(port_);
  half.write(framed(MessageKind::hello, 100, "half"));
  LoopbackSocket::connected(port_);  // and away
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "nothing happened");
  EXPECT_TRUE(silent.is_closed_by_peer());
}

TEST_F(ControlPlaneTest, AProcessThatBreaksTheProtocolEndsAll) {
  start(0, 2, wait_for_others);
  const LoopbackSocket liar = LoopbackSocket::connected(port_);
  const std::string hello = PayloadWriter().text("a test").number(2).number(1).text("elsewhere").bytes();
  liar.write(framed(MessageKind::hello, hello.size(), hello) + "garbage of more than a header's length");
  expect_failure(0, AllOf(HasSubstr("rank 1 on elsewhere ended"), HasSubstr("what it sent is no message")));
}

TEST_F(ControlPlaneTest, ServesManyMembersInOneThread) {
  constexpr std::uint32_t size = 64;
  std::vector<std::string> gathered;
  std::vector<std::thread> members;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    members.emplace_back([&, rank] {
      ControlPlane plane(launch(rank, size, port_), patient());
      plane.agree("DAG file", plane.broadcast("digest"));
      const std::vector<std::string> parts = plane.gather(std::to_string(rank));
      if (rank == 0) gathered = parts;
      plane.leave();
    });
  }
  for (std::thread& member : members) member.join();
  ASSERT_EQ(gathered.size(), size);
  for (std::uint32_t rank = 0; rank < size; ++rank) EXPECT_EQ(gathered[rank], std::to_string(rank));
}

}  // namespace
}  // namespace tandem::control_plane_test
