#include "runtime/launch/member.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "runtime/launch/message_contents.h"
#include "runtime/launch/sentences.h"

namespace tandem {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr Seconds first_pause = 0.02, longest_pause = 0.5;  // between attempts to join
constexpr Seconds told_within = 5;                          // that this process failed

constexpr std::uint64_t waits = 1;  // a bit of what packed() gives
constexpr std::uint64_t packed(std::uint32_t task, bool waiting) { return std::uint64_t{task} << 1 | (waiting ? waits : 0U); }

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

}  // namespace

Member::Member(const Launch& launch, const ControlOptions& options, std::optional<tcp::endpoint> coordinator)
    : launch_(launch),
      options_(options),
      coordinator_(std::move(coordinator)),
      socket_(io_),
      tick_(io_),
      pause_(first_pause),
      clock_(longest_gap(options), now_in_seconds()),
      at_(packed(no_task, false)) {
  const Seconds deadline = now_in_seconds() + options_.join_timeout;
  connect();
  while (!welcome_ && !failure_) {
    const Seconds left = deadline - now_in_seconds();
    if (!accepted_ && left <= 0) {
      throw std::runtime_error("rank 0 at " + address() + " could not be joined within " + seconds_text(options_.join_timeout) +
                               " (" + refusal_ + "): check that it was started, and with the same address");
    }
    io_.run_one_for(accepted_ ? duration(options_.silence) : duration(left));
  }
  if (failure_) throw std::runtime_error(*failure_);
  serving_ = true;
  thread_ = std::thread([this] { io_.run(); });
}

Member::~Member() {
  asio::post(io_, [this] { close(); });
  thread_.join();
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (last_resort_.joinable()) last_resort_.join();
}

void Member::connect() {
  error_code error;
  std::vector<tcp::endpoint> endpoints;
  if (coordinator_) {
    endpoints.push_back(*coordinator_);
  } else {
    for (const auto& entry : tcp::resolver(io_).resolve(launch_.host, std::to_string(launch_.port), error))
      endpoints.push_back(entry.endpoint());
  }
  if (error) return connect_again(error.message());
  asio::async_connect(socket_, endpoints, [this](const error_code& refused, const tcp::endpoint&) {
    if (refused) return connect_again(refused.message());
    shake_hands();
  });
}

void Member::shake_hands() {
  if (!objected_) refusal_ = "what listens there does not answer";
  handshake_ = handshake_of_process(std::exchange(socket_, tcp::socket(io_)), launch_.secret);
  handshake_->start(options_.handshake, [this](const std::string& objection) {
    if (objection.empty()) return say_hello();
    objected_ = true;
    connect_again("what listens there " + objection +
                  ": rank 0 must be there, and all processes have the same TANDEM_SECRET or TANDEM_SECRET_FILE");
  });
}

void Member::say_hello() {
  connection_ = std::make_shared<Connection>(handshake_->take_socket(), Sender::rank_0);
  connection_->start({[this](const Message& message) { received(message); }, [this](const std::string& why) { closed(why); }});
  const Hello hello{launch_.version, launch_.session, launch_.size, launch_.rank, host_name()};
  connection_->send(MessageKind::hello, payload_of(hello));
}

/// Rank 0 may come later, or its machine have more requests at once than it accepts.
void Member::connect_again(const std::string& refusal) {
  refusal_ = refusal;
  tick_.expires_after(duration(pause_));
  pause_ = std::min(2 * pause_, longest_pause);
  tick_.async_wait([this](const error_code& error) {
    if (!error) connect();
  });
}

void Member::received(const Message& message) {
  answered_ = clock_.read(now_in_seconds());
  switch (message.kind) {
    case MessageKind::accepted:
      accepted_ = true;
      return look_after();
    case MessageKind::refused:
      connection_->close();
      objected_ = true;
      return connect_again(message.payload);
    case MessageKind::welcome:
      welcome_ = true;
      return;
    case MessageKind::pulse:
      rank_0_ = read_pulse(message.payload);
      return;
    case MessageKind::failure:
      return failed(message.payload);
    default:
      return answered(message);
  }
}

void Member::answered(const Message& message) {
  if (message.kind == MessageKind::leave) close();
  {
    const std::scoped_lock lock(mutex_);
    left_ = message.kind == MessageKind::leave;
    answer_ = message.payload;
  }
  changed_.notify_all();
}

void Member::closed(const std::string& why) {
  if (!accepted_) return connect_again("what listens there is not rank 0 of this run: " + why);
  failed("rank 0 at " + address() + " ended without a word, last " + task_text(options_, rank_0_) + " (" + why + ")");
}

void Member::look_after() {
  if (over_) return;  // the timer was due already when it was cancelled
  if (clock_.read(now_in_seconds()) - answered_ >= options_.silence) {
    const std::string sentence = "rank 0 at " + address() + " has not been heard of for " + seconds_text(options_.silence) +
                                 ", last " + task_text(options_, rank_0_);
    connection_->send(MessageKind::error, sentence);  // if it is only stopped, it will read why the others are gone
    return failed(sentence);
  }
  send_report();
  tick_.expires_after(duration(options_.report_interval));
  tick_.async_wait([this](const error_code& error) {
    if (!error) look_after();
  });
}

void Member::send_report() {
  const std::uint64_t at = at_;
  const bool waiting = (at & waits) != 0 || exchanging_;
  connection_->send(MessageKind::report, report_payload({steps_, static_cast<std::uint32_t>(at >> 1), waiting}));
}

void Member::close() {
  over_ = true;
  connection_->close();
  tick_.cancel();
}

void Member::failed(const std::string& sentence) {
  {
    const std::scoped_lock lock(mutex_);
    failure_ = sentence;
  }
  changed_.notify_all();
  close();
  if (!serving_) return;  // the constructor throws the sentence
  last_resort_ = std::thread([this] { end_unless_ended(); });
  const std::scoped_lock lock(callback_mutex_);
  told_ = true;
  if (callback_) callback_(sentence);
}

void Member::end_unless_ended() {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, duration(options_.last_resort), [this] { return ended_; })) return;
  ::dprintf(STDERR_FILENO, "%s (rank %u did not end by itself)\n", failure_->c_str(), launch_.rank);
  ::_exit(1);
}

/// From the caller's thread.
void Member::send_after_report(MessageKind kind, const std::string& payload) {
  asio::post(io_, [this, kind, payload] {
    send_report();
    connection_->send(kind, payload);
  });
}

std::string Member::exchange(MessageKind kind, const std::string& payload) {
  if (const auto largest = static_cast<std::size_t>(largest_payload(Sender::member, kind)); payload.size() > largest) {
    throw std::runtime_error("a part of '" + std::string(name_of(kind)) + "' has " + std::to_string(payload.size()) +
                             " bytes, expected at most " + std::to_string(largest));
  }
  ++steps_;
  exchanging_ = true;
  std::unique_lock lock(mutex_);
  if (left_) throw std::logic_error("an operation of the control plane after leaving it");
  send_after_report(kind, payload);
  changed_.wait(lock, [this] { return answer_ || failure_; });
  exchanging_ = false;
  ++steps_;
  if (!answer_) throw std::runtime_error(*failure_);
  return *std::exchange(answer_, std::nullopt);
}

void Member::progress(std::uint32_t task, bool waiting) {
  if (const std::uint64_t here = packed(task, waiting); at_.exchange(here) != here) ++steps_;
}

void Member::waits_no_more() {
  if ((at_.fetch_and(~waits) & waits) != 0) ++steps_;
}

void Member::fail(const std::string& error) {
  send_after_report(MessageKind::error, error);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration(told_within), [this] { return left_ || failure_; });
}

std::optional<std::string> Member::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void Member::on_failure(std::function<void(const std::string&)> callback) {
  const std::scoped_lock lock(callback_mutex_);
  callback_ = std::move(callback);
  if (callback_ && told_) callback_(*failure());
}

}  // namespace tandem
