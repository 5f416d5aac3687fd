// The bytes that rank 0 and a process exchange before anything else, and what is made of bytes that are mutated: 10^5 of them.
#include "runtime/launch/handshake.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/launch/message_contents.h"
#include "runtime/launch/message_reader.h"

namespace tandem::handshake_test {
namespace {

const std::string secret = "what both sides know";

Nonce nonce(std::uint8_t first) {
  Nonce bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return bytes;
}

const Nonce of_rank_0 = nonce(1), of_process = nonce(100);

TEST(Handshake, ProvesBothToEachOther) {
  const std::string challenge = challenge_of_rank_0(of_rank_0);
  EXPECT_EQ(challenge.size(), challenge_size);
  const std::string response = response_to(challenge, secret, of_process);
  EXPECT_EQ(response.size(), response_size);
  const Response checked = check_response(response, secret, of_rank_0);
  ASSERT_EQ(checked.verdict, HandshakeVerdict::proven);
  EXPECT_EQ(checked.of_process, of_process);
  const std::string confirmation = confirmation_of_rank_0(secret, of_rank_0, checked.of_process);
  EXPECT_EQ(confirmation.size(), confirmation_size);
  EXPECT_EQ(check_confirmation(confirmation, challenge, secret, of_process), HandshakeVerdict::proven);
  EXPECT_EQ(check_confirmation(refusal_of_rank_0(), challenge, secret, of_process), HandshakeVerdict::another_secret);
}

TEST(Handshake, SaysNothingOfTheSecret) {
  const std::string challenge = challenge_of_rank_0(of_rank_0);
  const std::string sent =
      challenge + response_to(challenge, secret, of_process) + confirmation_of_rank_0(secret, of_rank_0, of_process);
  for (std::size_t at = 0; at + 4 <= secret.size(); ++at) EXPECT_EQ(sent.find(secret.substr(at, 4)), std::string::npos);
}

TEST(Handshake, KnowsAnotherSecretAndAnotherProtocol) {
  const std::string challenge = challenge_of_rank_0(of_rank_0);
  EXPECT_EQ(check_response(response_to(challenge, "a guess", of_process), secret, of_rank_0).verdict,
            HandshakeVerdict::another_secret);
  EXPECT_EQ(check_response(response_to(challenge, secret, of_process), secret, nonce(2)).verdict,
            HandshakeVerdict::another_secret);
  EXPECT_EQ(check_response("GET / HTTP/1.1\r\n\r\n", secret, of_rank_0).verdict, HandshakeVerdict::no_handshake);
  EXPECT_EQ(check_response(std::string(response_size, 'x'), secret, of_rank_0).verdict, HandshakeVerdict::no_handshake);
  EXPECT_EQ(response_to("220 mail.example ready\r\n", secret, of_process), "");
  EXPECT_EQ(response_to(std::string(challenge_size, '\0'), secret, of_process), "");
}

// A pretender cannot have the process compute rank 0's proof, nor the other way round: their words differ.
TEST(Handshake, OneSidesProofIsNotTheOthers) {
  const std::string challenge = challenge_of_rank_0(of_rank_0);
  const std::string proof = response_to(challenge, secret, of_process).substr(challenge_size);
  EXPECT_EQ(check_confirmation(proof, challenge, secret, of_process), HandshakeVerdict::no_handshake);
  const std::string mirrored = response_to(challenge_of_rank_0(of_process), secret, of_rank_0).substr(challenge_size);
  EXPECT_EQ(check_confirmation(mirrored, challenge, secret, of_process), HandshakeVerdict::no_handshake);
}

TEST(Handshake, DrawsAnotherNumberEachTime) { EXPECT_NE(draw_nonce(), draw_nonce()); }

/// One of: a bit, a byte, a few bytes more, fewer, a piece doubled, or eight bytes of a length.
std::string mutated(std::string bytes, std::mt19937_64& draw) {
  const auto below = [&](std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(draw); };
  for (std::size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        break;
      case 1:
        bytes[at] = static_cast<char>(draw());
        break;
      case 2:
        bytes.insert(at, 1 + below(20), static_cast<char>(draw()));
        break;
      case 3:
        bytes.erase(at, 1 + below(20));
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, 1 + below(40)));
        break;
      default: {
        const std::uint64_t value = draw() >> below(64);
        bytes.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
      }
    }
  }
  return bytes;
}

constexpr int mutations = 50'000;  // of each of the two tests

// A single wrong bit is a wrong proof. Only what is whole, unchanged and in its place proves anything.
TEST(HandshakeFuzz, NoMutatedMessageProvesAnything) {
  std::mt19937_64 draw(23);
  const std::string challenge = challenge_of_rank_0(of_rank_0);
  const std::string response = response_to(challenge, secret, of_process);
  const std::string confirmation = confirmation_of_rank_0(secret, of_rank_0, of_process);
  for (int i = 0; i < mutations; ++i) {
    const std::string wrong_challenge = mutated(challenge, draw);
    EXPECT_EQ(response_to(wrong_challenge, secret, of_process).empty(),
              wrong_challenge.size() != challenge_size || !wrong_challenge.starts_with(protocol_name));
    const std::string wrong_response = mutated(response, draw);
    EXPECT_EQ(check_response(wrong_response, secret, of_rank_0).verdict == HandshakeVerdict::proven, wrong_response == response);
    const std::string wrong_confirmation = mutated(confirmation, draw);
    EXPECT_EQ(check_confirmation(wrong_confirmation, challenge, secret, of_process) == HandshakeVerdict::proven,
              wrong_confirmation == confirmation);
  }
}

std::string framed(MessageKind kind, const std::string& payload) {
  const MessageHeader header{.kind = static_cast<std::uint32_t>(kind), .length = payload.size()};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
}

/// What a reader makes of bytes that come in pieces: the messages, framed again, and whether it refused what follows them.
struct Reading {
  std::string messages;
  bool refused = false;
};

Reading read_in_pieces(Sender sender, std::string_view bytes, std::size_t piece) {
  MessageReader reader(sender);
  Reading reading;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.take(bytes.substr(at, piece), [&](const Message& message) {
        reading.messages += framed(message.kind, message.payload);
        return true;
      });
      EXPECT_LE(reader.held(), 2 * bytes.size() + 100);
    }
  } catch (const std::invalid_argument&) {
    reading.refused = true;
  }
  return reading;
}

/// Reads the payload as what its kind says; what is none throws std::invalid_argument and nothing else.
void read_contents(const std::string& payload) {
  for (const auto& read :
       {+[](const std::string& bytes) { (void)read_hello(bytes); }, +[](const std::string& bytes) { (void)read_report(bytes); },
        +[](const std::string& bytes) { (void)read_pulse(bytes); }}) {
    try {
      read(payload);
    } catch (const std::invalid_argument&) {
    }
  }
}

// Whatever the bytes: messages that were read are what was sent, byte by byte; the pieces make no difference; and nothing is held
// that did not come.
TEST(HandshakeFuzz, AMutatedConversationIsReadAsItStandsOrRefused) {
  std::mt19937_64 draw(42);
  const std::string hello = payload_of({.version = "1", .session = "run", .size = 3, .rank = 2, .host = "node"});
  const std::string members = framed(MessageKind::hello, hello) + framed(MessageKind::report, report_payload({7, 8, true})) +
                              framed(MessageKind::agree, PayloadWriter().text("DAG file").text("digest").bytes()) +
                              framed(MessageKind::gather, "a part") + framed(MessageKind::error, "why") +
                              framed(MessageKind::leave, "");
  const std::string rank_0s = framed(MessageKind::accepted, "") + framed(MessageKind::welcome, "") +
                              framed(MessageKind::pulse, pulse_payload({7, 8})) + framed(MessageKind::broadcast, "bytes") +
                              framed(MessageKind::failure, "a sentence");
  for (int i = 0; i < mutations; ++i) {
    const Sender sender = i % 2 == 0 ? Sender::member : Sender::rank_0;
    const std::string bytes = mutated(sender == Sender::member ? members : rank_0s, draw);
    const Reading whole = read_in_pieces(sender, bytes, bytes.size() + 1);
    EXPECT_TRUE(bytes.starts_with(whole.messages));
    const Reading pieces = read_in_pieces(sender, bytes, 1 + draw() % 30);
    EXPECT_EQ(pieces.messages, whole.messages);
    EXPECT_EQ(pieces.refused, whole.refused);
    read_contents(mutated(hello, draw));
  }
}

}  // namespace
}  // namespace tandem::handshake_test
