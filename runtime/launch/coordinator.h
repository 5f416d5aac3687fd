#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/launch/connection.h"
#include "runtime/launch/control_plane.h"
#include "runtime/launch/handshake_on_socket.h"
#include "runtime/launch/running_clock.h"

namespace tandem {

/// Rank 0's side of the control plane, which all members connect to, rank 0's own included. One thread serves all connections;
/// everything but the constructor and destructor runs there.
class Coordinator {
 public:
  /// Throws std::runtime_error when the port cannot be had.
  Coordinator(const Launch& launch, const ControlOptions& options);
  /// Tells the members of an early end, and waits until they have read it, but not for ever.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Returns the endpoint at which rank 0's own member finds the coordinator.
  boost::asio::ip::tcp::endpoint endpoint() const { return endpoint_; }

 private:
  struct Guest {
    std::shared_ptr<Connection> connection;
    std::optional<std::uint32_t> rank;  ///< once it has said hello
  };
  struct Process {
    Connection* connection = nullptr;  ///< of a guest; null before it joins
    std::string host;
    std::optional<Message> part;  ///< of the operation under way
  };

  Launch launch_;
  ControlOptions options_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer tick_, retry_, farewell_;
  boost::asio::ip::tcp::endpoint endpoint_;
  std::deque<std::shared_ptr<HandshakeOnSocket>> strangers_;  ///< who have proven nothing yet, the oldest first
  std::map<Connection*, Guest> guests_;
  std::vector<Process> processes_;
  RunningClock clock_;
  ProgressWatch watch_;
  std::string refused_connections_;  ///< why some could not be accepted
  std::uint64_t unproven_ = 0;       ///< connections that were closed as strangers'
  std::string last_unproven_;        ///< where the last of them came from, and what it did
  std::uint32_t joined_ = 0, arrived_ = 0;
  std::uint32_t first_to_arrive_ = 0;
  std::optional<std::string> failure_;
  bool left_ = false, ending_ = false;
  std::thread thread_;

  void accept();
  void challenge(boost::asio::ip::tcp::socket socket);
  void judged(HandshakeOnSocket& stranger, const std::string& objection);
  void welcome_guest(boost::asio::ip::tcp::socket socket);
  std::size_t most_strangers() const;
  void look_after();
  void received(Connection& connection, const Message& message);
  void closed(Connection& connection, const std::string& why);
  void join(Connection& connection, const std::string& payload);
  std::string objection_to(const struct Hello& hello) const;
  void dismiss(std::uint32_t rank);
  void dismiss_strangers();
  void take(std::uint32_t rank, const Message& message);
  void take_report(std::uint32_t rank, const std::string& payload);
  void take_part(std::uint32_t rank, const Message& message);
  void answer();
  void answer_all(MessageKind kind, const std::string& payload);
  void compare_digests();
  void fail(const std::string& sentence);
  void dismiss_with_failure(Connection& connection);
  void end();
  std::string place_of(std::uint32_t rank) const;
  std::string missing() const;
};

}  // namespace tandem
