#include "runtime/launch/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

namespace tandem {

namespace asio = boost::asio;
using boost::system::error_code;

Connection::Connection(asio::ip::tcp::socket socket, Sender peer)
    : socket_(std::move(socket)), self_(peer == Sender::member ? Sender::rank_0 : Sender::member), reader_(peer) {}

void Connection::start(Events events) {
  events_ = std::move(events);
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  socket_.non_blocking(true, ignored);
  wait_for_bytes();
}

/// It has no buffer of its own to be read into: rank 0 has thousands of connections.
void Connection::wait_for_bytes() {
  socket_.async_wait(asio::ip::tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
    if (error) return self->lost(error.message());
    self->read_what_came();
  });
}

void Connection::read_what_came() {
  std::array<char, std::size_t{1} << 16> block;
  error_code error;
  const std::size_t count = socket_.read_some(asio::buffer(block), error);
  if (error && error != asio::error::would_block && error != asio::error::interrupted) return lost(error.message());
  try {
    reader_.take({block.data(), count}, [this](const Message& message) {
      if (open_) events_.message(message);
      return open_;
    });
  } catch (const std::exception& thrown) {
    return lost(thrown.what());
  }
  if (open_) wait_for_bytes();
}

void Connection::send(MessageKind kind, const std::string& payload) {
  if (!open_ || finishing_) return;
  const std::int64_t largest = largest_payload(self_, kind);
  const bool sentence = kind == MessageKind::error || kind == MessageKind::failure || kind == MessageKind::refused;
  const std::size_t length = sentence ? std::min(payload.size(), static_cast<std::size_t>(largest)) : payload.size();
  if (static_cast<std::int64_t>(length) > largest)
    throw std::logic_error("a message '" + std::string(name_of(kind)) + "' of " + std::to_string(length) + " bytes");
  const MessageHeader header{.kind = static_cast<std::uint32_t>(kind), .length = length};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.append(payload, 0, length);
  to_send_.push_back(std::move(bytes));
  if (to_send_.size() == 1) write_first();
}

void Connection::write_first() {
  asio::async_write(socket_, asio::buffer(to_send_.front()), [self = shared_from_this()](const error_code& error, std::size_t) {
    // What the peer sent before it went may still be unread: the reader finds out that it went.
    if (error || !self->open_) return;
    self->to_send_.pop_front();
    if (!self->to_send_.empty()) return self->write_first();
    if (self->finishing_) self->shut_down_sending();
  });
}

void Connection::finish() {
  if (!open_ || finishing_) return;
  finishing_ = true;
  if (to_send_.empty()) shut_down_sending();
}

void Connection::shut_down_sending() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void Connection::close() {
  open_ = false;
  error_code ignored;
  socket_.close(ignored);
}

void Connection::lost(const std::string& why) {
  if (!open_) return;
  close();
  events_.closed(why);
}

}  // namespace tandem
