#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "runtime/launch/message.h"

namespace tandem {

/// Largest payloads: before a handshake, of a member's part of an operation, of rank 0's answer.
inline constexpr std::uint64_t largest_greeting = std::uint64_t{1} << 12;
inline constexpr std::uint64_t largest_part = std::uint64_t{1} << 30;
inline constexpr std::uint64_t largest_answer = std::uint64_t{1} << 40;

/// One TCP connection that carries messages. It belongs to the thread that runs its socket's io_context: every call and every
/// event happens there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Events {
    std::function<void(const Message&)> message;     ///< what it throws closes the connection
    std::function<void(const std::string&)> closed;  ///< why; at most once, and not after `close`
  };

  /// Closes when the peer sends anything but messages, or a payload larger than `largest_payload`.
  Connection(boost::asio::ip::tcp::socket socket, std::uint64_t largest_payload);

  void start(Events events);
  void allow_payloads(std::uint64_t largest_payload) { largest_payload_ = largest_payload; }
  void send(MessageKind kind, const std::string& payload = {});

  /// Ends sending, and waits for the peer to close: closing before the peer has read everything would take the rest from it.
  void finish();
  bool finishing() const { return finishing_; }
  void close();

 private:
  boost::asio::ip::tcp::socket socket_;
  std::uint64_t largest_payload_;
  Events events_;
  MessageHeader header_;
  Message received_;
  std::deque<std::string> to_send_;
  bool open_ = true;
  bool finishing_ = false;

  void read_header();
  void read_payload();
  void write_first();
  void lost(const std::string& why);
  void shut_down_sending();
};

}  // namespace tandem
