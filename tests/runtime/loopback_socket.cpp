#include "tests/runtime/loopback_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace tandem {
namespace {

constexpr std::chrono::seconds limit(50);
constexpr std::chrono::milliseconds pause(5);

void require(bool held, const char* what) {
  if (!held) throw std::system_error(errno, std::generic_category(), what);
}

class Address {
 public:
  explicit Address(std::uint16_t port) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(port);
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address_); }
  socklen_t& length() { return length_; }
  std::uint16_t port() const { return ntohs(address_.sin_port); }

 private:
  sockaddr_in address_{};
  socklen_t length_ = sizeof address_;
};

}  // namespace

LoopbackSocket::LoopbackSocket(int descriptor) : descriptor_(descriptor) {
  require(descriptor >= 0, "socket");
  const timeval patience{.tv_sec = limit.count(), .tv_usec = 0};
  require(::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0, "setsockopt");
}

LoopbackSocket::LoopbackSocket(LoopbackSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

LoopbackSocket::~LoopbackSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LoopbackSocket LoopbackSocket::listening(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Address address(port);
  require(::bind(descriptor, address.get(), address.length()) == 0 && ::listen(descriptor, SOMAXCONN) == 0, "listen");
  return LoopbackSocket(descriptor);
}

LoopbackSocket LoopbackSocket::connected(std::uint16_t port) {
  Address address(port);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(descriptor, address.get(), address.length()) == 0) return LoopbackSocket(descriptor);
    require(std::chrono::steady_clock::now() < deadline, "connect");
    ::close(descriptor);
    std::this_thread::sleep_for(pause);
  }
}

LoopbackSocket LoopbackSocket::accepted() const { return LoopbackSocket(::accept(descriptor_, nullptr, nullptr)); }

void LoopbackSocket::write(const std::string& bytes) const {
  require(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()), "send");
}

std::string LoopbackSocket::read(std::size_t count) const {
  std::string bytes(count, '\0');
  const ssize_t read = ::recv(descriptor_, bytes.data(), count, MSG_WAITALL);
  bytes.resize(read < 0 ? 0 : static_cast<std::size_t>(read));
  return bytes;
}

bool LoopbackSocket::is_closed_by_peer() const {
  std::array<char, 256> bytes{};
  ssize_t count = 1;
  while (count > 0) count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  return count == 0 || errno == ECONNRESET;
}

std::uint16_t free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Address address(0);
  require(::bind(descriptor, address.get(), address.length()) == 0, "bind");
  require(::getsockname(descriptor, address.get(), &address.length()) == 0, "getsockname");
  ::close(descriptor);
  return address.port();
}

}  // namespace tandem
