#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/launch/connection.h"
#include "runtime/launch/control_plane.h"
#include "runtime/launch/handshake_on_socket.h"
#include "runtime/launch/running_clock.h"

namespace tandem {

/// One process's connection to the coordinator, with the thread that serves it.
class Member {
 public:
  /// Joins; see ControlPlane. `coordinator`: where it is, when it is this process's own.
  Member(const Launch& launch, const ControlOptions& options, std::optional<boost::asio::ip::tcp::endpoint> coordinator);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Sends this process's part of an operation and returns rank 0's answer. Throws std::runtime_error when the run fails.
  std::string exchange(MessageKind kind, const std::string& payload);
  void progress(std::uint32_t task, bool waiting);
  void waits_no_more();
  void fail(const std::string& error);
  std::optional<std::string> failure() const;
  void on_failure(std::function<void(const std::string&)> callback);

 private:
  Launch launch_;
  ControlOptions options_;
  std::optional<boost::asio::ip::tcp::endpoint> coordinator_;

  // Touched only where io_ runs: in the constructor, then in thread_.
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;  ///< while it connects
  boost::asio::steady_timer tick_;
  std::shared_ptr<HandshakeOnSocket> handshake_;  ///< before there is a connection
  std::shared_ptr<Connection> connection_;
  Seconds pause_;
  std::string refusal_;    ///< why the last attempt to join came to nothing
  bool objected_ = false;  ///< something that answered said why; that tells more than what did not answer
  bool accepted_ = false, welcome_ = false, serving_ = false, over_ = false;
  RunningClock clock_;
  Seconds answered_ = 0;  ///< when rank 0 was last heard of, by that clock
  ProgressReport rank_0_;

  std::atomic<std::uint64_t> steps_ = 0;
  std::atomic<std::uint64_t> at_;  ///< twice the task, plus one where it waits
  std::atomic<bool> exchanging_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> answer_, failure_;
  bool left_ = false, ended_ = false;

  std::mutex callback_mutex_;  ///< held while it is called
  std::function<void(const std::string&)> callback_;
  bool told_ = false;

  std::thread thread_, last_resort_;

  void connect();
  void shake_hands();
  void say_hello();
  void connect_again(const std::string& refusal);
  void received(const Message& message);
  void answered(const Message& message);
  void closed(const std::string& why);
  void look_after();
  void send_report();
  void send_after_report(MessageKind kind, const std::string& payload);
  void close();
  void failed(const std::string& sentence);
  void end_unless_ended();
  std::string address() const { return launch_.host + ":" + std::to_string(launch_.port); }
};

}  // namespace tandem
