#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/units.h"
#include "runtime/launch/handshake.h"

namespace tandem {

/// The handshake on one connection, either side. It belongs to the thread that runs its socket's io_context.
class HandshakeOnSocket : public std::enable_shared_from_this<HandshakeOnSocket> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  /// An empty text when the peer has proven itself; otherwise what it did instead, such as "has another secret".
  using Done = std::function<void(const std::string& objection)>;

  HandshakeOnSocket(Socket socket, std::string secret);
  virtual ~HandshakeOnSocket() = default;
  HandshakeOnSocket(const HandshakeOnSocket&) = delete;
  HandshakeOnSocket& operator=(const HandshakeOnSocket&) = delete;

  /// Calls `done` once, within `limit`, unless it is closed before. An objection closes the connection.
  void start(Seconds limit, Done done);
  void close();
  Socket take_socket() { return std::move(socket_); }
  /// The address that it comes from, as text.
  const std::string& peer() const { return peer_; }

 protected:
  std::string secret_;

  virtual void begin() = 0;
  void write(std::string bytes, std::function<void()> then);
  void read(std::size_t count, std::function<void(std::string_view)> then);
  void decide(const std::string& objection);

 private:
  Socket socket_;
  boost::asio::steady_timer limit_;
  std::array<char, response_size> received_{};  ///< the longest of the three messages
  std::string to_send_, peer_;
  Done done_;
};

/// Of rank 0 with whoever connects.
std::shared_ptr<HandshakeOnSocket> handshake_of_rank_0(HandshakeOnSocket::Socket socket, std::string secret);
/// Of a process with what listens at rank 0's address.
std::shared_ptr<HandshakeOnSocket> handshake_of_process(HandshakeOnSocket::Socket socket, std::string secret);

}  // namespace tandem
