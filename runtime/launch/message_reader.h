#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/launch/message.h"

namespace tandem {

enum class Sender : std::uint8_t {
  member,
  rank_0
};

/// The longest sentence of a member's error; what rank 0 makes of it may be twice as long.
inline constexpr std::uint64_t longest_error = std::uint64_t{1} << 16;
/// A member's part of a broadcast or gather.
inline constexpr std::uint64_t largest_part = std::uint64_t{1} << 30;
/// What rank 0 makes of all parts of a gather, for itself.
inline constexpr std::uint64_t largest_answer = std::uint64_t{1} << 40;

/// Returns the largest payload of a message, or -1 when `from` never sends this kind.
std::int64_t largest_payload(Sender from, MessageKind kind);

/// Makes messages of the bytes of one connection, in whatever pieces they come. What it holds grows with the bytes that have
/// come, never with the length that a header claims.
class MessageReader {
 public:
  explicit MessageReader(Sender from) : from_(from) {}

  /// Takes bytes, and calls `received` for each message that they complete until it returns false: then the rest is dropped.
  /// Throws std::invalid_argument at a header that belongs to no message of this sender, or announces too large a payload; what
  /// is called after that is a broken invariant.
  void take(std::string_view bytes, const std::function<bool(const Message&)>& received);

  /// Returns the bytes of memory that the message under way takes.
  std::size_t held() const { return message_.payload.capacity(); }

 private:
  Sender from_;
  std::array<char, sizeof(MessageHeader)> header_{};
  std::size_t header_read_ = 0;
  std::uint64_t missing_ = 0;  ///< bytes of the payload, once the header is read
  Message message_;

  bool in_header() const { return header_read_ < header_.size(); }
  void read_header();
};

}  // namespace tandem
