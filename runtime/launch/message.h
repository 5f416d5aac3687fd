#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

/// What the control plane's connections carry after the handshake. A message is a header of 16 bytes (the magic number, the kind,
/// the payload's length: u32, u32, u64, little-endian as every machine with a GPU is), then the payload.
enum class MessageKind : std::uint32_t {
  // from a member
  hello,   ///< version, session, size, rank, host; the first message
  report,  ///< count, task, whether it waits; every so often
  error,   ///< the sentence of what the member threw
  // from all members; when all have sent theirs, rank 0 answers each with the same kind
  barrier,
  broadcast,
  gather,
  agree,
  leave,  ///< the last message
  // from rank 0
  accepted,  ///< answers hello
  refused,   ///< answers the hello of another run
  welcome,   ///< all have joined
  pulse,     ///< answers a report with rank 0's own
  failure,   ///< the sentence with which all end
};
inline constexpr std::uint32_t message_kind_count = static_cast<std::uint32_t>(MessageKind::failure) + 1;

std::string_view name_of(MessageKind kind);

struct Message {
  MessageKind kind = MessageKind::hello;
  std::string payload;
};

struct MessageHeader {
  static constexpr std::uint32_t magic_number = 0x4D444E54;  // TNDM

  std::uint32_t magic = magic_number;
  std::uint32_t kind = 0;
  std::uint64_t length = 0;
};
static_assert(sizeof(MessageHeader) == 16);

inline constexpr std::int64_t report_size = 24, pulse_size = 16;  // payloads

/// Fields of a payload one after the other: numbers of 8 bytes, texts with their length before them.
class PayloadWriter {
 public:
  PayloadWriter& number(std::uint64_t value);
  PayloadWriter& text(std::string_view value);
  std::string bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Throws std::invalid_argument when the payload ends before a field.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }
  std::uint64_t number();
  std::string text();

 private:
  std::string_view rest_;
};

}  // namespace tandem
