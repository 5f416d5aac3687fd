#include "runtime/launch/message_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/launch/message_contents.h"
#include "runtime/launch/running_clock.h"

namespace tandem::message_reader_test {
namespace {

std::string framed(MessageKind kind, const std::string& payload, std::uint64_t more = 0) {
  const MessageHeader header{.kind = static_cast<std::uint32_t>(kind), .length = payload.size() + more};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
}

TEST(MessageReader, TakesBytesInAnyPieces) {
  const std::string bytes =
      framed(MessageKind::barrier, "") + framed(MessageKind::gather, std::string(100, 'x')) + framed(MessageKind::leave, "");
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    MessageReader reader(Sender::member);
    std::vector<Message> messages;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.take(std::string_view(bytes).substr(at, piece), [&](const Message& message) {
        messages.push_back(message);
        return true;
      });
    }
    ASSERT_EQ(messages.size(), 3U) << piece;
    EXPECT_EQ(messages[1].kind, MessageKind::gather);
    EXPECT_EQ(messages[1].payload, std::string(100, 'x'));
    EXPECT_EQ(messages[2].kind, MessageKind::leave);
  }
}

TEST(MessageReader, StopsWhereItIsTold) {
  MessageReader reader(Sender::member);
  int received = 0;
  reader.take(framed(MessageKind::barrier, "") + "whatever follows is not looked at", [&](const Message&) {
    ++received;
    return false;
  });
  EXPECT_EQ(received, 1);
}

TEST(MessageReader, RefusesALengthBeforeItHoldsIt) {
  for (std::uint32_t number = 0; number < message_kind_count; ++number) {
    for (const Sender sender : {Sender::member, Sender::rank_0}) {
      const auto kind = static_cast<MessageKind>(number);
      const std::int64_t largest = largest_payload(sender, kind);
      const auto take = [&](std::uint64_t length) {
        MessageReader reader(sender);
        reader.take(framed(kind, "", length), [](const Message&) { return true; });
        EXPECT_LT(reader.held(), 100U) << name_of(kind);
      };
      if (largest < 0) {
        EXPECT_THROW(take(0), std::invalid_argument) << name_of(kind);
        continue;
      }
      EXPECT_NO_THROW(take(static_cast<std::uint64_t>(largest))) << name_of(kind);
      EXPECT_THROW(take(static_cast<std::uint64_t>(largest) + 1), std::invalid_argument) << name_of(kind);
      EXPECT_THROW(take(~std::uint64_t{0}), std::invalid_argument) << name_of(kind);
    }
  }
}

TEST(MessageReader, HoldsWhatCameAndNotWhatIsAnnounced) {
  MessageReader reader(Sender::rank_0);
  const auto nothing = [](const Message&) { return ADD_FAILURE(), false; };
  reader.take(framed(MessageKind::gather, "", largest_answer), nothing);
  constexpr std::size_t piece = 1000;
  for (std::size_t come = piece; come <= 100 * piece; come += piece) {
    reader.take(std::string(piece, 'x'), nothing);
    EXPECT_LE(reader.held(), 2 * come);  // a string grows to twice its length
  }
}

TEST(MessageContents, ComeBack) {
  const Hello hello{.version = "1", .session = "run", .size = 3, .rank = 2, .host = "node"};
  const Hello read = read_hello(payload_of(hello));
  EXPECT_EQ(read.version + read.session + read.host, "1runnode");
  EXPECT_EQ(read.size, 3U);
  EXPECT_EQ(read.rank, 2U);
  const ProgressReport report = read_report(report_payload({.count = 9, .task = no_task, .waiting = true}));
  EXPECT_EQ(report.count, 9U);
  EXPECT_EQ(report.task, no_task);
  EXPECT_TRUE(report.waiting);
  EXPECT_EQ(read_pulse(pulse_payload({.count = 9, .task = 4})).task, 4U);
}

TEST(MessageContents, AreWholeOrNone) {
  const std::string hello = payload_of({.version = "1", .session = "run", .size = 3, .rank = 2, .host = "node"});
  const std::string report = report_payload({}), pulse = pulse_payload({});
  for (std::size_t length = 0; length < hello.size(); ++length)
    EXPECT_THROW(read_hello(hello.substr(0, length)), std::invalid_argument);
  for (std::size_t length = 0; length < report.size(); ++length)
    EXPECT_THROW(read_report(report.substr(0, length)), std::invalid_argument);
  for (std::size_t length = 0; length < pulse.size(); ++length)
    EXPECT_THROW(read_pulse(pulse.substr(0, length)), std::invalid_argument);
  EXPECT_THROW(read_hello(hello + "x"), std::invalid_argument);
  EXPECT_THROW(read_report(report + "x"), std::invalid_argument);
  EXPECT_THROW(read_pulse(pulse + "x"), std::invalid_argument);
  EXPECT_THROW(read_report(PayloadWriter().number(1).number(std::uint64_t{1} << 32).number(0).bytes()), std::invalid_argument);
  EXPECT_THROW(read_hello(PayloadWriter().text(std::string(513, 'v')).text("").number(1).number(0).text("").bytes()),
               std::invalid_argument);
  EXPECT_LE(payload_of({std::string(10'000, 'v'), std::string(10'000, 's'), 1, 0, std::string(10'000, 'h')}).size(),
            static_cast<std::size_t>(largest_payload(Sender::member, MessageKind::hello)));
}

TEST(RunningClock, StandsStillWhileTheProcessDoes) {
  RunningClock clock(2, 100);
  EXPECT_EQ(clock.read(101), 1);
  EXPECT_EQ(clock.read(103), 3);
  EXPECT_EQ(clock.read(1000), 5);  // stopped in between
  EXPECT_EQ(clock.read(1001), 6);
}

}  // namespace
}  // namespace tandem::message_reader_test
