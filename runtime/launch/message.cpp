#include "runtime/launch/message.h"

#include <array>
#include <cstring>
#include <stdexcept>

namespace tandem {

std::string_view name_of(MessageKind kind) {
  static constexpr std::array<std::string_view, message_kind_count> names{"hello",   "report", "error",  "barrier",  "broadcast",
                                                                          "gather",  "agree",  "leave",  "accepted", "refused",
                                                                          "welcome", "pulse",  "failure"};
  return names.at(static_cast<std::size_t>(kind));
}

PayloadWriter& PayloadWriter::number(std::uint64_t value) {
  std::array<char, sizeof value> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  bytes_.append(bytes.data(), bytes.size());
  return *this;
}

PayloadWriter& PayloadWriter::text(std::string_view value) {
  number(value.size());
  bytes_.append(value);
  return *this;
}

std::uint64_t PayloadReader::number() {
  std::uint64_t value = 0;
  if (rest_.size() < sizeof value) throw std::invalid_argument("a message ends early");
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

std::string PayloadReader::text() {
  const std::uint64_t length = number();
  if (rest_.size() < length) throw std::invalid_argument("a message ends early");
  std::string value(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return value;
}

}  // namespace tandem
