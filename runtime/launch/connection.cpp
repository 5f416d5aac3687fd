#include "runtime/launch/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <exception>
#include <utility>

namespace tandem {

namespace asio = boost::asio;
using boost::system::error_code;

Connection::Connection(asio::ip::tcp::socket socket, std::uint64_t largest_payload)
    : socket_(std::move(socket)), largest_payload_(largest_payload) {}

void Connection::start(Events events) {
  events_ = std::move(events);
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  read_header();
}

void Connection::read_header() {
  asio::async_read(socket_, asio::buffer(&header_, sizeof header_),
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     if (error) return self->lost(error.message());
                     const MessageHeader& header = self->header_;
                     if (header.magic != MessageHeader::magic_number || header.kind >= message_kind_count ||
                         header.length > self->largest_payload_)
                       return self->lost("what it sent is no message");
                     self->received_.kind = static_cast<MessageKind>(header.kind);
                     self->received_.payload.resize(header.length);
                     self->read_payload();
                   });
}

void Connection::read_payload() {
  asio::async_read(socket_, asio::buffer(received_.payload), [self = shared_from_this()](const error_code& error, std::size_t) {
    if (error) return self->lost(error.message());
    if (!self->open_) return;
    try {
      self->events_.message(self->received_);
    } catch (const std::exception& thrown) {
      return self->lost(thrown.what());
    }
    if (self->open_) self->read_header();
  });
}

void Connection::send(MessageKind kind, const std::string& payload) {
  if (!open_ || finishing_) return;
  const MessageHeader header{.kind = static_cast<std::uint32_t>(kind), .length = payload.size()};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  to_send_.push_back(bytes + payload);
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
