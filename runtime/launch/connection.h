#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "runtime/launch/message.h"
#include "runtime/launch/message_reader.h"

namespace tandem {

/// One TCP connection that carries messages, of peers that have proven themselves. It belongs to the thread that runs its
/// socket's io_context: every call and every event happens there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Events {
    std::function<void(const Message&)> message;     ///< what it throws closes the connection
    std::function<void(const std::string&)> closed;  ///< why; at most once, and not after `close`
  };

  /// Closes when the peer sends anything but what it may (see MessageReader).
  Connection(boost::asio::ip::tcp::socket socket, Sender peer);

  void start(Events events);
  /// A sentence that is longer than messages may be is cut.
  void send(MessageKind kind, const std::string& payload = {});

  /// Ends sending, and waits for the peer to close: closing before the peer has read everything would take the rest from it.
  void finish();
  bool finishing() const { return finishing_; }
  void close();

 private:
  boost::asio::ip::tcp::socket socket_;
  Sender self_;
  Events events_;
  MessageReader reader_;
  std::deque<std::string> to_send_;
  bool open_ = true;
  bool finishing_ = false;

  void wait_for_bytes();
  void read_what_came();
  void write_first();
  void lost(const std::string& why);
  void shut_down_sending();
};

}  // namespace tandem
