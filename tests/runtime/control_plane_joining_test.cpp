// Processes that come to rank 0 late, twice or from another run, and strangers at its port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/launch/handshake.h"
#include "runtime/launch/message.h"
#include "runtime/launch/message_contents.h"
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

/// Proves itself to rank 0, and leaves the connection to a test.
LoopbackSocket proven_connection(std::uint16_t port, const std::string& secret = shared_secret) {
  LoopbackSocket socket = LoopbackSocket::connected(port);
  const std::string challenge = socket.read(challenge_size);
  const Nonce own = draw_nonce();
  socket.write(response_to(challenge, secret, own));
  EXPECT_EQ(check_confirmation(socket.read(confirmation_size), challenge, secret, own), HandshakeVerdict::proven);
  return socket;
}

std::string hello_of_rank_1() {
  const std::string hello =
      payload_of({.version = std::string(program_version()), .session = "a test", .size = 2, .rank = 1, .host = "elsewhere"});
  return framed(MessageKind::hello, hello.size(), hello);
}

TEST_F(ControlPlaneJoining, StrangersAreIgnored) {
  ControlOptions options = patient();
  options.handshake = 0.3;
  start(0, 2, wait_for_others, options);
  const std::string hello = hello_of_rank_1();  // before this protocol had a handshake
  for (const std::string& garbage : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), hello,
                                     std::string(response_size, '\0'), std::string(1 << 16, 'x')}) {
    const LoopbackSocket stranger = LoopbackSocket::connected(port_);
    stranger.write(garbage);
    EXPECT_TRUE(stranger.is_closed_by_peer());
  }
  const LoopbackSocket half = LoopbackSocket::connected(port_);
  half.write(std::string(protocol_name) + "half");
  LoopbackSocket::connected(port_);  // and away
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "nothing happened");
  EXPECT_TRUE(half.is_closed_by_peer());
}

TEST_F(ControlPlaneJoining, AStrangerIsToldNothingButThatItIsOne) {
  start(0, 2, wait_for_others);
  const LoopbackSocket stranger = LoopbackSocket::connected(port_);
  const std::string challenge = stranger.read(challenge_size);
  stranger.write(response_to(challenge, "a guess", draw_nonce()));
  EXPECT_EQ(stranger.read(1000), refusal_of_rank_0());
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "nothing happened");
}

TEST_F(ControlPlaneJoining, AChallengeIsNeverTheSame) {
  start(0, 2, wait_for_others);
  const LoopbackSocket one = LoopbackSocket::connected(port_), another = LoopbackSocket::connected(port_);
  const std::string first = one.read(challenge_size), second = another.read(challenge_size);
  EXPECT_EQ(first.size(), challenge_size);
  EXPECT_NE(first, second);
  // What a process has proven once, heard and sent again, proves nothing.
  const std::string heard = response_to(first, shared_secret, draw_nonce());
  another.write(heard);
  EXPECT_EQ(another.read(1000), refusal_of_rank_0());
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "nothing happened");
}

// Of 300 that say nothing, as many as may are kept; the oldest go first, long before their time is over, and nobody else waits.
TEST_F(ControlPlaneJoining, SilentStrangersKeepNobodyOut) {
  start(0, 2, wait_for_others);
  std::vector<LoopbackSocket> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(LoopbackSocket::connected(port_));
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(strangers[static_cast<std::size_t>(i)].is_closed_by_peer()) << i;
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "nothing happened");
}

TEST_F(ControlPlaneJoining, AnotherSecretIsNamedByBoth) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  start(0, 2, wait_for_others, options);
  Launch other = launch(1, 2, port_);
  other.secret = "the secret of another run";
  processes_.start([=](const Ready&) -> std::string {
    ControlPlane plane(other, options);
    return "joined";
  });
  expect_failure(0, AllOf(HasSubstr("rank 1 of 2 did not come"), HasSubstr("did not prove to be of this run"),
                          HasSubstr("from 127.0.0.1 has another secret")));
  expect_failure(1, AllOf(HasSubstr("could not be joined within 1 s"), HasSubstr("TANDEM_SECRET")));
}

TEST_F(ControlPlaneJoining, WhatOnlyPretendsToBeRank0LearnsNothing) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  const LoopbackSocket pretender = LoopbackSocket::listening(port_);
  start(1, 2, wait_for_others, options);
  const LoopbackSocket member = pretender.accepted();
  member.write(challenge_of_rank_0(draw_nonce()));
  EXPECT_EQ(member.read(response_size).size(), response_size);
  member.write(std::string(confirmation_size, 'x'));
  EXPECT_TRUE(member.is_closed_by_peer());  // which said no hello
  expect_failure(0, HasSubstr("what listens there"));
}

TEST_F(ControlPlaneJoining, WhatListensAndSaysNothingIsAskedAgain) {
  ControlOptions options = patient();
  options.join_timeout = 1.5;
  options.handshake = 0.2;
  const LoopbackSocket silent = LoopbackSocket::listening(port_);
  start(1, 2, wait_for_others, options);
  const LoopbackSocket first = silent.accepted();
  const LoopbackSocket second = silent.accepted();
  expect_failure(0, AllOf(HasSubstr("could not be joined within 1.5 s"), HasSubstr("has not proven itself within 0.2 s")));
}

TEST_F(ControlPlaneJoining, WhyItWasRefusedIsNotForgottenWhileItTriesAgain) {
  ControlOptions options = patient();
  options.join_timeout = 1;
  const LoopbackSocket rank_0 = LoopbackSocket::listening(port_);
  start(1, 2, wait_for_others, options);
  const LoopbackSocket first = rank_0.accepted();
  first.write(challenge_of_rank_0(draw_nonce()));
  EXPECT_EQ(first.read(response_size).size(), response_size);
  first.write(refusal_of_rank_0());
  const LoopbackSocket second = rank_0.accepted();  // which is not answered
  expect_failure(0, AllOf(HasSubstr("could not be joined within 1 s"), HasSubstr("has another secret")));
}

TEST_F(ControlPlaneJoining, AnotherVersionEndsAll) {
  start(0, 2, wait_for_others);
  Launch other = launch(1, 2, port_);
  other.version = "0.0";
  processes_.start([=](const Ready&) -> std::string {
    ControlPlane plane(other, patient());
    return "joined";
  });
  for (const std::size_t process : {0, 1})
    expect_failure(process, AllOf(HasSubstr("rank 1 on " + host() + " is Tandem 0.0, rank 0"),  // whose host may not be known yet
                                  HasSubstr(" is Tandem " + std::string(program_version()) + ": start the same version")));
}

TEST_F(ControlPlaneJoining, SeveralProcessesWithoutASecretAreABug) {
  Launch bare = launch(1, 2, port_);
  bare.secret.clear();
  EXPECT_THROW(ControlPlane(bare, patient()), std::logic_error);
}

TEST_F(ControlPlaneJoining, AProcessThatBreaksTheProtocolEndsAll) {
  const std::string barrier = framed(MessageKind::barrier, 0, "");
  const std::string endless = framed(MessageKind::gather, std::uint64_t{1} << 60, "");
  const std::string of_rank_0 = framed(MessageKind::failure, 0, "");
  const std::string short_report = framed(MessageKind::report, 8, std::string(8, '\0'));
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"garbage of more than a header's length", "what it sent is no message"},
      {endless, "it sent 'gather' of 1152921504606846976 bytes, expected at most 1073741824"},
      {of_rank_0, "it sent 'failure', which is not its to send"},
      {short_report, "a message ends early"},
      {hello_of_rank_1(), "it sent 'hello' out of turn"},
  };
  for (const auto& [bytes, objection] : wrong) {
    SCOPED_TRACE(objection);
    port_ = free_port();
    Processes processes;
    processes.start([port = port_](const Ready& ready) {
      ControlPlane plane(launch(0, 2, port), patient());
      return wait_for_others(plane, ready);
    });
    const LoopbackSocket liar = proven_connection(port_);
    liar.write(hello_of_rank_1() + bytes);
    const Processes::Outcome outcome = processes.outcome(0);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1 on elsewhere ended"), HasSubstr(objection)));
  }
}

TEST_F(ControlPlaneJoining, WhoIsLetInAndSaysNoHelloIsDropped) {
  start(0, 2, wait_for_others);
  const LoopbackSocket silent = proven_connection(port_), wrong = proven_connection(port_);
  wrong.write(framed(MessageKind::barrier, 0, ""));
  EXPECT_TRUE(wrong.is_closed_by_peer());
  start(1, 2, wait_for_others);
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "nothing happened");
  EXPECT_TRUE(silent.is_closed_by_peer());
}

}  // namespace
}  // namespace tandem::control_plane_joining_test
