#include "runtime/launch/handshake_on_socket.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "runtime/launch/sentences.h"

namespace tandem {

namespace asio = boost::asio;
using boost::system::error_code;

HandshakeOnSocket::HandshakeOnSocket(Socket socket, std::string secret)
    : secret_(std::move(secret)), socket_(std::move(socket)), limit_(socket_.get_executor()) {
  error_code gone;
  const auto endpoint = socket_.remote_endpoint(gone);
  peer_ = gone ? "an address that is gone" : endpoint.address().to_string();
}

void HandshakeOnSocket::start(Seconds limit, Done done) {
  done_ = std::move(done);
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  limit_.expires_after(duration(limit));
  limit_.async_wait([self = shared_from_this(), limit](const error_code& error) {
    if (!error) self->decide("has not proven itself within " + seconds_text(limit));
  });
  begin();
}

void HandshakeOnSocket::close() {
  done_ = {};
  error_code ignored;
  socket_.close(ignored);
  limit_.cancel();
}

void HandshakeOnSocket::write(std::string bytes, std::function<void()> then) {
  to_send_ = std::move(bytes);
  asio::async_write(socket_, asio::buffer(to_send_),
                    [self = shared_from_this(), then = std::move(then)](const error_code& error, std::size_t) {
                      if (error) return self->decide("went away (" + error.message() + ")");
                      if (self->done_) then();
                    });
}

void HandshakeOnSocket::read(std::size_t count, std::function<void(std::string_view)> then) {
  asio::async_read(socket_, asio::buffer(received_.data(), count),
                   [self = shared_from_this(), count, then = std::move(then)](const error_code& error, std::size_t) {
                     if (error) return self->decide("went away without a proof (" + error.message() + ")");
                     if (self->done_) then({self->received_.data(), count});
                   });
}

void HandshakeOnSocket::decide(const std::string& objection) {
  if (!done_) return;
  const Done done = std::exchange(done_, {});
  limit_.cancel();
  if (!objection.empty()) close();
  done(objection);
}

namespace {

class OfRank0 final : public HandshakeOnSocket {
 public:
  using HandshakeOnSocket::HandshakeOnSocket;

 private:
  const Nonce own_ = draw_nonce();

  void begin() override {
    write(challenge_of_rank_0(own_), [this] { read(response_size, [this](std::string_view bytes) { judge(bytes); }); });
  }

  void judge(std::string_view bytes) {
    const Response response = check_response(bytes, secret_, own_);
    switch (response.verdict) {
      case HandshakeVerdict::proven:
        return write(confirmation_of_rank_0(secret_, own_, response.of_process), [this] { decide({}); });
      case HandshakeVerdict::another_secret:
        return write(refusal_of_rank_0(), [this] { decide("has another secret"); });
      case HandshakeVerdict::no_handshake:
        return decide("speaks another protocol");
    }
  }
};

class OfProcess final : public HandshakeOnSocket {
 public:
  using HandshakeOnSocket::HandshakeOnSocket;

 private:
  const Nonce own_ = draw_nonce();
  std::string challenge_;

  void begin() override {
    read(challenge_size, [this](std::string_view bytes) { answer(bytes); });
  }

  void answer(std::string_view bytes) {
    challenge_ = bytes;
    const std::string response = response_to(bytes, secret_, own_);
    if (response.empty()) return decide("speaks another protocol");
    write(response, [this] { read(confirmation_size, [this](std::string_view confirmation) { judge(confirmation); }); });
  }

  void judge(std::string_view confirmation) {
    switch (check_confirmation(confirmation, challenge_, secret_, own_)) {
      case HandshakeVerdict::proven:
        return decide({});
      case HandshakeVerdict::another_secret:
        return decide("has another secret");
      case HandshakeVerdict::no_handshake:
        return decide("does not know the secret");
    }
  }
};

}  // namespace

std::shared_ptr<HandshakeOnSocket> handshake_of_rank_0(HandshakeOnSocket::Socket socket, std::string secret) {
  return std::make_shared<OfRank0>(std::move(socket), std::move(secret));
}

std::shared_ptr<HandshakeOnSocket> handshake_of_process(HandshakeOnSocket::Socket socket, std::string secret) {
  return std::make_shared<OfProcess>(std::move(socket), std::move(secret));
}

}  // namespace tandem
