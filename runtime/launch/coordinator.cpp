#include "runtime/launch/coordinator.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "runtime/base/printable.h"
#include "runtime/launch/listener.h"
#include "runtime/launch/message_contents.h"
#include "runtime/launch/ranks_text.h"
#include "runtime/launch/sentences.h"

namespace tandem {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds accept_again_after(100);
constexpr std::chrono::seconds farewell(5);
constexpr std::size_t spare_strangers = 64;

bool is_operation(MessageKind kind) { return kind >= MessageKind::barrier && kind <= MessageKind::leave; }

}  // namespace

Coordinator::Coordinator(const Launch& launch, const ControlOptions& options)
    : launch_(launch),
      options_(options),
      acceptor_(listen_as_rank_0(io_, launch)),
      tick_(io_),
      retry_(io_),
      farewell_(io_),
      endpoint_(reached_at(acceptor_)),
      processes_(launch.size),
      clock_(longest_gap(options), now_in_seconds()),
      watch_(launch.size, options.timeout, options.silence, 0) {
  accept();
  tick_.expires_after(duration(options_.join_timeout));
  tick_.async_wait([this](const error_code& error) {
    if (!error && joined_ < processes_.size()) fail(missing());
  });
  thread_ = std::thread([this] { io_.run(); });
}

Coordinator::~Coordinator() {
  asio::post(io_, [this] { end(); });
  thread_.join();
}

void Coordinator::accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      refused_connections_ = error.message();
      retry_.expires_after(accept_again_after);
      retry_.async_wait([this](const error_code& cancelled) {
        if (!cancelled && acceptor_.is_open()) accept();
      });
      return;
    }
    challenge(std::move(socket));
    accept();
  });
}

/// Of those who have still to come, each may be proving itself; some more may be strangers.
std::size_t Coordinator::most_strangers() const { return processes_.size() - joined_ + spare_strangers; }

void Coordinator::challenge(tcp::socket socket) {
  if (strangers_.size() >= most_strangers()) judged(*strangers_.front(), "was the oldest of too many that had proven nothing");
  const auto stranger = strangers_.emplace_back(handshake_of_rank_0(std::move(socket), launch_.secret));
  stranger->start(options_.handshake,
                  [this, which = stranger.get()](const std::string& objection) { judged(*which, objection); });
}

void Coordinator::judged(HandshakeOnSocket& stranger, const std::string& objection) {
  const auto found = std::ranges::find(strangers_, &stranger, &std::shared_ptr<HandshakeOnSocket>::get);
  const std::shared_ptr<HandshakeOnSocket> judged_one = *found;
  strangers_.erase(found);
  if (objection.empty()) return welcome_guest(judged_one->take_socket());
  judged_one->close();
  ++unproven_;
  last_unproven_ = judged_one->peer() + " " + objection;
}

void Coordinator::welcome_guest(tcp::socket socket) {
  const auto connection = std::make_shared<Connection>(std::move(socket), Sender::member);
  guests_.emplace(connection.get(), Guest{connection, std::nullopt});
  connection->start({[this, guest = connection.get()](const Message& message) { received(*guest, message); },
                     [this, guest = connection.get()](const std::string& why) { closed(*guest, why); }});
}

void Coordinator::look_after() {
  if (failure_ || left_ || ending_) return;
  if (const auto culprit = watch_.culprit(clock_.read(now_in_seconds()))) {
    const std::string who = place_of(culprit->rank);
    const std::string where = task_text(options_, watch_.last(culprit->rank));
    const std::string timeout = seconds_text(options_.timeout);
    switch (culprit->reason) {
      case ProgressWatch::Reason::silent:
        fail(who + " has not been heard of for " + seconds_text(options_.silence) + ", last " + where);
        return dismiss(culprit->rank);
      case ProgressWatch::Reason::stuck:
        return fail(who + " has made no progress for " + timeout + " " + where + " while others wait");
      case ProgressWatch::Reason::deadlock:
        return fail("all processes have waited for each other for " + timeout + ", first of all " + who + " " + where);
    }
  }
  tick_.expires_after(duration(options_.report_interval));
  tick_.async_wait([this](const error_code& error) {
    if (!error) look_after();
  });
}

void Coordinator::received(Connection& connection, const Message& message) {
  const Guest& guest = guests_.at(&connection);
  if (ending_ || connection.finishing()) return;
  if (guest.rank) return take(*guest.rank, message);
  if (message.kind != MessageKind::hello) throw std::invalid_argument("it began without hello");
  join(connection, message.payload);
}

/// Returns what keeps a process of this run from joining, or nothing.
std::string Coordinator::objection_to(const Hello& hello) const {
  const std::string newcomer = "rank " + std::to_string(hello.rank) + " on " + hello.host;
  if (hello.version != launch_.version) {
    return newcomer + " is Tandem " + hello.version + ", " + place_of(0) + " is Tandem " + launch_.version +
           ": start the same version everywhere";
  }
  if (hello.size != launch_.size || hello.rank >= hello.size) {
    return newcomer + " expects " + std::to_string(hello.size) + " processes, " + place_of(0) + " expects " +
           std::to_string(launch_.size) + ": start all with the same number";
  }
  if (processes_[hello.rank].connection != nullptr) {
    return "two processes claim to be rank " + std::to_string(hello.rank) + ", on " + processes_[hello.rank].host + " and on " +
           hello.host + ": each needs a rank of its own";
  }
  return {};
}

void Coordinator::join(Connection& connection, const std::string& payload) {
  Hello hello = read_hello(payload);
  hello.host = printable(hello.host);
  if (hello.session != launch_.session) {
    connection.send(MessageKind::refused,
                    "the run that waits there is '" + launch_.session + "', this is '" + hello.session + "'");
    return connection.finish();
  }
  if (failure_) return dismiss_with_failure(connection);
  if (const std::string objection = objection_to(hello); !objection.empty()) {
    fail(objection);
    return dismiss_with_failure(connection);
  }
  const auto rank = static_cast<std::uint32_t>(hello.rank);
  processes_[rank] = {.connection = &connection, .host = hello.host, .part = std::nullopt};
  guests_.at(&connection).rank = rank;
  connection.send(MessageKind::accepted);
  if (++joined_ < processes_.size()) return;

  acceptor_.close();
  dismiss_strangers();
  answer_all(MessageKind::welcome, {});
  watch_ = ProgressWatch(processes_.size(), options_.timeout, options_.silence, clock_.read(now_in_seconds()));
  tick_.cancel();
  look_after();
}

/// It reads no more: nobody needs to wait for that.
void Coordinator::dismiss(std::uint32_t rank) {
  Connection* connection = std::exchange(processes_[rank].connection, nullptr);
  connection->close();
  guests_.erase(connection);
}

/// Also those who were let in but said no hello; not those that still read why they may not join.
void Coordinator::dismiss_strangers() {
  for (const auto& stranger : strangers_) stranger->close();
  strangers_.clear();
  std::erase_if(guests_, [](const auto& entry) {
    if (entry.second.rank || entry.first->finishing()) return false;
    entry.first->close();
    return true;
  });
}

void Coordinator::take(std::uint32_t rank, const Message& message) {
  if (message.kind == MessageKind::report) return take_report(rank, message.payload);
  if (message.kind == MessageKind::error) {
    return fail(place_of(rank) + " failed " + task_text(options_, watch_.last(rank)) + ": " + message.payload);
  }
  if (!is_operation(message.kind) || joined_ < processes_.size() || processes_[rank].part)
    throw std::invalid_argument("it sent '" + std::string(name_of(message.kind)) + "' out of turn");
  take_part(rank, message);
}

void Coordinator::take_report(std::uint32_t rank, const std::string& payload) {
  watch_.report(rank, read_report(payload), clock_.read(now_in_seconds()));
  processes_[rank].connection->send(MessageKind::pulse, pulse_payload(watch_.last(0)));
}

void Coordinator::take_part(std::uint32_t rank, const Message& message) {
  if (arrived_ == 0) first_to_arrive_ = rank;
  const MessageKind expected = arrived_ == 0 ? message.kind : processes_[first_to_arrive_].part->kind;
  if (message.kind != expected) {
    return fail(place_of(rank) + " has come to '" + std::string(name_of(message.kind)) + "' while " + place_of(first_to_arrive_) +
                " is at '" + std::string(name_of(expected)) + "'");
  }
  processes_[rank].part = message;
  if (++arrived_ == processes_.size()) answer();
}

void Coordinator::answer() {
  const MessageKind kind = processes_[0].part->kind;
  if (kind == MessageKind::agree) compare_digests();
  if (failure_) return;
  std::string for_all, for_rank_0;
  if (kind == MessageKind::broadcast) for_all = std::move(processes_[0].part->payload);
  if (kind == MessageKind::gather) {
    PayloadWriter parts;
    for (const Process& process : processes_) parts.text(process.part->payload);
    for_rank_0 = parts.bytes();
  }
  for (Process& process : processes_) process.part.reset();
  arrived_ = 0;
  left_ = kind == MessageKind::leave;
  for (Process& process : processes_)
    process.connection->send(kind, &process == &processes_[0] && kind == MessageKind::gather ? for_rank_0 : for_all);
}

void Coordinator::answer_all(MessageKind kind, const std::string& payload) {
  for (const Process& process : processes_) process.connection->send(kind, payload);
}

void Coordinator::compare_digests() {
  const std::string& agreed = processes_[0].part->payload;
  std::vector<std::uint32_t> others;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank)
    if (processes_[rank].part->payload != agreed) others.push_back(rank);
  if (others.empty()) return;
  const std::string what = PayloadReader(agreed).text();
  fail(ranks_text(others) + (others.size() == 1 ? " has" : " have") + " another " + what + " than rank 0, the first of them on " +
       processes_[others.front()].host + ": give all processes the same");
}

void Coordinator::closed(Connection& connection, const std::string& why) {
  const std::optional<std::uint32_t> rank = guests_.at(&connection).rank;
  guests_.erase(&connection);
  if (ending_ && guests_.empty()) farewell_.cancel();
  if (!rank) return;
  processes_[*rank].connection = nullptr;
  if (failure_ || left_ || ending_) return;
  fail(place_of(*rank) + " ended without a word, last " + task_text(options_, watch_.last(*rank)) + " (" + why + ")");
}

void Coordinator::fail(const std::string& sentence) {
  if (failure_) return;
  failure_ = sentence;
  tick_.cancel();
  for (const Process& process : processes_)
    if (process.connection != nullptr) dismiss_with_failure(*process.connection);
}

void Coordinator::dismiss_with_failure(Connection& connection) {
  connection.send(MessageKind::failure, *failure_);
  connection.finish();
}

void Coordinator::end() {
  if (!left_) fail(place_of(0) + " ended before the others");
  ending_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  tick_.cancel();
  retry_.cancel();
  dismiss_strangers();
  for (const auto& [connection, guest] : guests_) connection->finish();
  if (guests_.empty()) return;
  farewell_.expires_after(farewell);
  farewell_.async_wait([this](const error_code&) {
    for (const auto& [connection, guest] : guests_) connection->close();
    guests_.clear();
  });
}

std::string Coordinator::place_of(std::uint32_t rank) const {
  const std::string& host = processes_[rank].host;
  return "rank " + std::to_string(rank) + (host.empty() ? "" : " on " + host);
}

std::string Coordinator::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank)
    if (processes_[rank].connection == nullptr) ranks.push_back(rank);
  return ranks_text(ranks) + " of " + std::to_string(processes_.size()) + " did not come to " + launch_.host + ":" +
         std::to_string(launch_.port) + " within " + seconds_text(options_.join_timeout) +
         (refused_connections_.empty() ? "" : " (some connections were not accepted: " + refused_connections_ + ")") +
         (unproven_ == 0 ? ""
                         : " (" + std::to_string(unproven_) + (unproven_ == 1 ? " connection" : " connections") +
                               " did not prove to be of this run; the last, from " + last_unproven_ + ")") +
         ": check that they were started, and with the same address";
}

}  // namespace tandem
