#include "runtime/launch/message_reader.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace tandem {
namespace {

constexpr std::int64_t never_sent = -1;
constexpr std::int64_t short_text = 1 << 13, few_fields = 1 << 12;

struct PayloadLimits {
  std::int64_t of_member, of_rank_0;
};

constexpr PayloadLimits limits_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::hello:
      return {few_fields, never_sent};
    case MessageKind::report:
      return {report_size, never_sent};
    case MessageKind::error:
      return {longest_error, never_sent};
    case MessageKind::barrier:
    case MessageKind::leave:
      return {0, 0};
    case MessageKind::broadcast:
      return {largest_part, largest_part};
    case MessageKind::gather:
      return {largest_part, largest_answer};
    case MessageKind::agree:
      return {short_text, 0};
    case MessageKind::accepted:
    case MessageKind::welcome:
      return {never_sent, 0};
    case MessageKind::refused:
      return {never_sent, short_text};
    case MessageKind::pulse:
      return {never_sent, pulse_size};
    case MessageKind::failure:
      return {never_sent, 2 * longest_error};
  }
  return {never_sent, never_sent};
}

}  // namespace

std::int64_t largest_payload(Sender from, MessageKind kind) {
  const PayloadLimits limits = limits_of(kind);
  return from == Sender::member ? limits.of_member : limits.of_rank_0;
}

void MessageReader::take(std::string_view bytes, const std::function<bool(const Message&)>& received) {
  for (;;) {
    if (in_header()) {
      const std::string_view part = bytes.substr(0, header_.size() - header_read_);
      std::ranges::copy(part, header_.begin() + static_cast<std::ptrdiff_t>(header_read_));
      header_read_ += part.size();
      bytes.remove_prefix(part.size());
      if (in_header()) return;
      read_header();
    }
    const std::string_view part = bytes.substr(0, missing_);
    message_.payload.append(part);
    missing_ -= part.size();
    bytes.remove_prefix(part.size());
    if (missing_ > 0) return;
    header_read_ = 0;
    const bool goes_on = received(message_);
    message_.payload = {};
    if (!goes_on) return;
  }
}

void MessageReader::read_header() {
  MessageHeader header;
  std::memcpy(&header, header_.data(), sizeof header);
  if (header.magic != MessageHeader::magic_number || header.kind >= message_kind_count)
    throw std::invalid_argument("what it sent is no message");
  message_.kind = static_cast<MessageKind>(header.kind);
  const std::int64_t largest = largest_payload(from_, message_.kind);
  const std::string named = "'" + std::string(name_of(message_.kind)) + "'";
  if (largest < 0) throw std::invalid_argument("it sent " + named + ", which is not its to send");
  if (header.length > static_cast<std::uint64_t>(largest)) {
    throw std::invalid_argument("it sent " + named + " of " + std::to_string(header.length) + " bytes, expected at most " +
                                std::to_string(largest));
  }
  missing_ = header.length;
}

}  // namespace tandem
