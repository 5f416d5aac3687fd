#include "studies/serve/job_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

namespace tandem::studies {
namespace {

[[noreturn]] void throw_errno(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

std::pair<OwnDescriptor, OwnDescriptor> socket_pair(int type) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_errno("cannot hand a job over");
  return {OwnDescriptor(ends[0]), OwnDescriptor(ends[1])};
}

bool send_all(int stream, const std::string& bytes, int flags) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t sent = ::send(stream, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | flags);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) done += static_cast<std::size_t>(sent);
  }
  return true;
}

/// A message of one byte, the kind of a job, with room for one descriptor beside it.
class JobMessage {
 public:
  explicit JobMessage(std::uint8_t kind) : kind_(kind) {
    message_.msg_iov = &data_;
    message_.msg_iovlen = 1;
    message_.msg_control = room_.data();
    message_.msg_controllen = sizeof(room_);
  }
  JobMessage(const JobMessage&) = delete;
  JobMessage& operator=(const JobMessage&) = delete;

  msghdr* get() { return &message_; }
  std::uint8_t kind() const { return kind_; }
  /// Null where nothing came beside the message.
  cmsghdr* beside() { return CMSG_FIRSTHDR(&message_); }

 private:
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room_{};
  std::uint8_t kind_;
  iovec data_{&kind_, sizeof(kind_)};
  msghdr message_{};
};

}  // namespace

OwnDescriptor& OwnDescriptor::operator=(OwnDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

int OwnDescriptor::release() { return std::exchange(descriptor_, -1); }

void OwnDescriptor::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

JobDoor::JobDoor() { std::tie(outside, inside) = socket_pair(SOCK_SEQPACKET); }

std::optional<ArrivedJob> next_job(int inside) {
  JobMessage message(0);
  ssize_t got = 0;
  do got = ::recvmsg(inside, message.get(), MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  const cmsghdr* beside = message.beside();
  if (got != 1 || beside == nullptr || beside->cmsg_type != SCM_RIGHTS) return {};
  int stream = -1;
  std::memcpy(&stream, CMSG_DATA(beside), sizeof(stream));
  return ArrivedJob{message.kind(), OwnDescriptor(stream)};
}

JobStream::JobStream(int outside, std::size_t kind, const std::string& body) {
  auto [own, theirs] = socket_pair(SOCK_STREAM);
  JobMessage message(static_cast<std::uint8_t>(kind));
  cmsghdr* beside = message.beside();
  beside->cmsg_level = SOL_SOCKET;
  beside->cmsg_type = SCM_RIGHTS;
  beside->cmsg_len = CMSG_LEN(sizeof(int));
  const int given = theirs.get();
  std::memcpy(CMSG_DATA(beside), &given, sizeof(given));
  if (::sendmsg(outside, message.get(), MSG_NOSIGNAL) != 1) throw_errno("cannot hand a job over");
  theirs.close();
  if (!send_all(own.get(), body, 0) || ::shutdown(own.get(), SHUT_WR) != 0) {
    // It ended before it had read all; why, its answer says.
  }
  stream_ = std::move(own);
}

JobStream::Wait JobStream::next(std::string& line, Seconds patience) {
  for (;;) {
    if (const std::size_t end = read_.find('\n', searched_); end != std::string::npos) {
      line = read_.substr(0, end);
      read_.erase(0, end + 1);
      searched_ = 0;
      return Wait::line;
    }
    searched_ = read_.size();
    pollfd waited{stream_.get(), POLLIN, 0};
    constexpr double milliseconds = 1e3;
    if (::poll(&waited, 1, static_cast<int>(patience * milliseconds)) == 0) return Wait::nothing_yet;
    std::array<char, 65536> bytes{};
    const ssize_t got = ::recv(stream_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Wait::end;
    read_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

bool write_line(int stream, std::string line, bool waits) {
  line += '\n';
  return send_all(stream, line, waits ? 0 : MSG_DONTWAIT);
}

std::optional<std::string> read_all(int stream, std::size_t most) {
  std::string text;
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t got = ::recv(stream, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(got));
    if (text.size() > most) return {};
  }
}

}  // namespace tandem::studies
