#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// A TCP socket of the loopback, for those who know no protocol.
class LoopbackSocket {
 public:
  static LoopbackSocket listening(std::uint16_t port);
  /// Tries until somebody listens, but not for ever.
  static LoopbackSocket connected(std::uint16_t port);
  ~LoopbackSocket();
  LoopbackSocket(LoopbackSocket&& other) noexcept;
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;

  LoopbackSocket accepted() const;
  void write(const std::string& bytes) const;
  /// Reads so many bytes, or fewer where the peer closes.
  std::string read(std::size_t count) const;
  /// Reads until the peer closes, but not for ever.
  bool is_closed_by_peer() const;

 private:
  explicit LoopbackSocket(int descriptor);
  int descriptor_;
};

/// A TCP port of the loopback that nobody listened at just now.
std::uint16_t free_port();

}  // namespace tandem
