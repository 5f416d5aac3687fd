#include "sim/replica_play.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>
#include <vector>

namespace tandem::sim {
namespace {

struct Worker {
  std::uint64_t steps = 0;  ///< begun
  Seconds free = 0;         ///< when it is done with what it computes
  Seconds work = 0;         ///< that it took
};

/// When a gradient of the round arrives, of which replica.
using Arrival = std::pair<Seconds, std::size_t>;

/// How far the replicas are that take no rounds: how many have taken how many steps, and which of them wait.
class Leads {
 public:
  explicit Leads(std::size_t replicas) : steps_(replicas, 0), at_{{.replicas = replicas, .waiting = {}}} {}

  std::uint64_t ahead(std::size_t replica) const { return steps_[replica] - slowest_; }
  std::uint64_t steps(std::size_t replica) const { return steps_[replica]; }
  void wait(std::size_t replica) { at_[ahead(replica)].waiting.push_back(replica); }

  /// The replica has taken one more step. Returns those that waited and no longer need to, each at most `lead` ahead now.
  std::vector<std::size_t> step(std::size_t replica, std::uint64_t lead) {
    --at_[ahead(replica)].replicas;
    ++steps_[replica];
    if (ahead(replica) == at_.size()) at_.emplace_back();
    ++at_[ahead(replica)].replicas;
    std::vector<std::size_t> released;
    while (at_.front().replicas == 0) {
      at_.pop_front();
      ++slowest_;
      if (lead >= at_.size()) continue;
      std::vector<std::size_t>& waiting = at_[lead].waiting;
      released.insert(released.end(), waiting.begin(), waiting.end());
      waiting.clear();
    }
    return released;
  }

 private:
  struct Level {
    std::size_t replicas = 0;
    std::vector<std::size_t> waiting;
  };
  std::vector<std::uint64_t> steps_;
  std::deque<Level> at_;  ///< by steps ahead of the slowest
  std::uint64_t slowest_ = 0;
};

class FreePlay {
 public:
  FreePlay(const Replicas& replicas, std::uint64_t lead)
      : replicas_(replicas),
        lead_(lead),
        leads_(replicas.count),
        read_(replicas.count, 0),
        waits_since_(replicas.count, -1),
        is_sending_(replicas.count, false) {
    for (std::size_t replica = 0; replica < replicas.count; ++replica) begin(replica, 0);
  }

  /// Forgets what was counted.
  void start_counting() {
    play_ = {};
    play_.in_flight_before = ends_.size();
    counted_from_ = now_;
  }

  /// Goes on until the weights have been updated once more.
  void update() {
    while (is_sending_[ends_.top().second]) queue_at_servers();
    const auto [date, replica] = ends_.top();
    ends_.pop();
    now_ = date;
    ++play_.applied;
    ++play_.updates;
    ++play_.staleness[version_ - read_[replica]];
    ++version_;
    const std::vector<std::size_t> released = leads_.step(replica, lead_);
    if (leads_.ahead(replica) > lead_) {
      leads_.wait(replica);
      waits_since_[replica] = now_;
    } else {
      begin(replica, now_);
    }
    for (const std::size_t waiter : released) {
      play_.waited += now_ - std::max(waits_since_[waiter], counted_from_);
      waits_since_[waiter] = -1;
      begin(waiter, now_);
    }
  }

  ReplicaPlay end() {
    play_.time = now_ - counted_from_;
    play_.in_flight_after = ends_.size();
    for (const Seconds since : waits_since_)
      if (since >= 0) play_.waited += now_ - std::max(since, counted_from_);
    return play_;
  }

 private:
  const Replicas& replicas_;
  std::uint64_t lead_;
  Leads leads_;
  std::vector<std::uint64_t> read_;   ///< by replica: how many updates the weights have had that it computes with
  std::vector<Seconds> waits_since_;  ///< by replica; negative: it does not
  std::vector<bool> is_sending_;      ///< by replica: with servers, its event is the end of its step and not of the exchange
  Seconds servers_free_ = 0;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> ends_;
  std::uint64_t version_ = 0;
  Seconds now_ = 0, counted_from_ = 0;
  ReplicaPlay play_;

  void begin(std::size_t replica, Seconds date) {
    ++play_.begun;
    play_.most_ahead = std::max(play_.most_ahead, leads_.ahead(replica));
    read_[replica] = version_;
    const Seconds computed = date + replicas_.step(replica, leads_.steps(replica));
    is_sending_[replica] = replicas_.service > 0;
    ends_.emplace(is_sending_[replica] ? computed : computed + replicas_.exchange(replica), replica);
  }

  /// The next replica has its gradient, and the servers know when they will have dealt with it.
  void queue_at_servers() {
    const auto [date, replica] = ends_.top();
    ends_.pop();
    servers_free_ = std::max(servers_free_, date) + replicas_.service;
    is_sending_[replica] = false;
    ends_.emplace(std::max(date + replicas_.exchange(replica), servers_free_), replica);
  }
};

}  // namespace

double ReplicaPlay::dropped_share() const {
  const std::uint64_t ended = applied + dropped;
  return ended == 0 ? 0 : static_cast<double>(dropped) / static_cast<double>(ended);
}

double ReplicaPlay::mean_staleness() const {
  double count = 0, sum = 0;
  for (const auto& [updates, gradients] : staleness) {
    count += static_cast<double>(gradients);
    sum += static_cast<double>(updates) * static_cast<double>(gradients);
  }
  return count == 0 ? 0 : sum / count;
}

ReplicaPlay play_rounds(const Replicas& replicas, const Rounds& rounds, const PlayLength& length) {
  std::vector<Worker> workers(replicas.count);
  std::vector<Arrival> arrivals(replicas.count);
  std::vector<Seconds> work(replicas.count);
  ReplicaPlay play;
  Seconds begun = 0, counted_from = 0;
  const auto computing = [&] {
    const auto late = std::ranges::count_if(workers, [&](const Worker& worker) { return worker.free > begun; });
    return rounds.every * static_cast<std::uint64_t>(late);
  };
  for (std::uint64_t round = 0; round < length.warm_up + length.counted; ++round) {
    if (round == length.warm_up) {
      play = {};
      play.in_flight_before = computing();
      counted_from = begun;
    }
    for (std::size_t i = 0; i < replicas.count; ++i) {
      work[i] = 0;
      for (std::uint64_t step = 0; step < rounds.every; ++step) work[i] += replicas.step(i, workers[i].steps + step);
      arrivals[i] = {std::max(workers[i].free, begun) + work[i], i};
    }
    const auto last = arrivals.begin() + static_cast<std::ptrdiff_t>(rounds.needed - 1);
    std::ranges::nth_element(arrivals, last);
    const Arrival closing = *last;
    const Seconds close = closing.first, next = close + replicas.exchange(closing.second);
    for (const Arrival& arrival : arrivals) {
      const auto [date, replica] = arrival;
      Worker& worker = workers[replica];
      if (worker.free > begun) {  // an older gradient, which nobody waits for
        if (worker.free > next) continue;
        play.dropped += rounds.every;
        play.wasted += worker.work;
        if (worker.free >= close) continue;
      }
      const Seconds since = std::max(worker.free, begun);
      play.begun += rounds.every;
      worker.steps += rounds.every;
      worker.work = work[replica];
      worker.free = date;
      if (arrival <= closing) {
        play.applied += rounds.every;
        play.waited += close - date;
      } else if (rounds.late == Late::abandons) {
        play.dropped += rounds.every;
        play.wasted += close - since;
        worker.free = close;
      } else if (date <= next) {
        play.dropped += rounds.every;
        play.wasted += worker.work;
      }
    }
    ++play.updates;
    begun = next;
  }
  play.time = begun - counted_from;
  play.in_flight_after = computing();
  play.staleness[0] = play.applied;
  return play;
}

ReplicaPlay play_freely(const Replicas& replicas, std::uint64_t lead, const PlayLength& length) {
  FreePlay play(replicas, lead);
  for (std::uint64_t update = 0; update < length.warm_up * replicas.count; ++update) play.update();
  play.start_counting();
  for (std::uint64_t update = 0; update < length.counted * replicas.count; ++update) play.update();
  return play.end();
}

}  // namespace tandem::sim
