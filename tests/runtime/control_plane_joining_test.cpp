// Processes that come to rank 0 late, twice or from another run, and strangers at its port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/launch/message.h"
#include "tests/runtime/control_plane_fixture.h"
#include "tests/runtime/loopback_socket.h"

namespace tandem::control_plane_joining_test {
namespace {

using namespace control_plane_fixture;
using testing::AllOf;
using testing::HasSubstr;

class ControlPlaneJoining : public ControlPlaneFixture {};

TEST_F(ControlPlaneJoining, Rank0ListensAtAllAddressesUnlessItIsOnTheLoopback) {
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

TEST_F(ControlPlaneJoining, NamesTheRanksThatDoNotCome) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  start(0, 5, wait_for_others, options);
  start(2, 5, wait_for_others);
  const std::string sentence = "ranks 1, 3, 4 of 5 did not come to 127.0.0.1:" + std::to_string(port_) + " within 1 s";
  // The second may come when rank 0 has gone, on a machine that is very busy.
  expect_failure(0, HasSubstr("of 5 did not come to"));
  expect_failure(1, testing::AnyOf(HasSubstr(sentence), HasSubstr("could not be joined")));
}

TEST_F(ControlPlaneJoining, Rank0ThatDoesNotComeIsNamed) {
  ControlOptions options = patient();
  options.join_timeout = 0.2;
  start(1, 2, wait_for_others, options);
  expect_failure(0, AllOf(HasSubstr("rank 0 at 127.0.0.1:" + std::to_string(port_) + " could not be joined within 0.2 s"),
                          HasSubstr("Connection refused")));
}

TEST_F(ControlPlaneJoining, Rank0MayComeLast) {
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

TEST_F(ControlPlaneJoining, TwoProcessesOfOneRankEndAll) {
  for (const std::uint32_t rank : {0U, 1U, 1U}) start(rank, 3, wait_for_others);
  // Which of the two is refused, is not known; that it is told why, is.
  for (const std::size_t process : {0, 1, 2})
    expect_failure(process, HasSubstr("two processes claim to be rank 1, on " + host() + " and on " + host()));
}

TEST_F(ControlPlaneJoining, ProcessesOfAnotherSizeEndAll) {
  start(0, 3, wait_for_others);
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1})
    expect_failure(process, AllOf(HasSubstr("rank 1 on " + host() + " expects 2 processes"), HasSubstr("expects 3")));
}

TEST_F(ControlPlaneJoining, APortThatIsTakenIsNamed) {
  const LoopbackSocket taken = LoopbackSocket::listening(port_);
  start(0, 2, wait_for_others);
  expect_failure(0, AllOf(HasSubstr("rank 0 cannot listen at port " + std::to_string(port_)), HasSubstr("TANDEM_PORT")));
}

TEST_F(ControlPlaneJoining, SomethingElseAtThePortIsNoRank0) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  const LoopbackSocket other = LoopbackSocket::listening(port_);
  start(1, 2, wait_for_others, options);
  other.accepted().write("220 mail.example ready\r\n");
  expect_failure(0, AllOf(HasSubstr("rank 0 at 127.0.0.1:" + std::to_string(port_) + " could not be joined within 1 s"),
                          HasSubstr("what listens there")));
}

TEST_F(ControlPlaneJoining, AnotherRunsProcessIsRefused) {
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

TEST_F(ControlPlaneJoining, StrangersAreIgnored) {
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

TEST_F(ControlPlaneJoining, AProcessThatBreaksTheProtocolEndsAll) {
  start(0, 2, wait_for_others);
  const LoopbackSocket liar = LoopbackSocket::connected(port_);
  const std::string hello = PayloadWriter().text("a test").number(2).number(1).text("elsewhere").bytes();
  liar.write(framed(MessageKind::hello, hello.size(), hello) + "garbage of more than a header's length");
  expect_failure(0, AllOf(HasSubstr("rank 1 on elsewhere ended"), HasSubstr("what it sent is no message")));
}

}  // namespace
}  // namespace tandem::control_plane_joining_test
