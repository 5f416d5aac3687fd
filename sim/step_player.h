#pragma once

#include <compare>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "sim/chunk_steps.h"
#include "sim/fluid_network.h"

namespace tandem::sim {

/// Plays collectives message by message: each is a flow over its hop's links, started when what it waits for has happened.
class StepPlayer {
 public:
  /// `ended` is told when the last message of a task's collective has arrived.
  StepPlayer(const Dag& dag, const Speedup& speedup, std::function<void(TaskId, Seconds)> ended);

  /// Returns how many flows can be in the air at once: one per hop, for every stream that a communicator's collectives are in.
  static std::size_t lanes(const Dag& dag);

  void begin(TaskId task, Seconds now);
  void flow_ended(FlowId flow, Seconds now);

  bool is_due(Seconds now) const { return !events_.empty() && events_.top().date <= now; }
  bool is_idle() const { return events_.empty(); }
  /// Returns the date of the next event. There must be one.
  Seconds next() const { return events_.top().date; }

  /// Plays all events that are due.
  void play(Seconds now, FluidNetwork& network);

 private:
  struct Running {
    TaskId task = 0;
    const Paths* paths = nullptr;
    ChunkSteps steps;
    std::vector<std::uint32_t> waits;  ///< by hop and message: how many things it still waits for
    std::size_t left = 0;              ///< messages that have not arrived
  };
  struct Message {
    std::uint32_t running = 0, hop = 0, number = 0;
    auto operator<=>(const Message&) const = default;
  };
  enum class What : std::uint8_t {
    begin,
    left,
    arrived
  };
  struct Event {
    Seconds date = 0;
    What what = What::begin;
    Message message;
    bool operator>(const Event& other) const {
      return std::tie(date, what, message) > std::tie(other.date, other.what, other.message);
    }
  };

  const Dag& dag_;
  Speedup speedup_;
  CollectiveCosts costs_;
  std::function<void(TaskId, Seconds)> ended_;
  std::deque<Running> running_;
  std::vector<std::uint32_t> free_running_;
  std::vector<Message> in_flight_;  ///< by flow, which is also its lane
  std::vector<FlowId> free_flows_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;

  void release(const Message& message, Seconds now, FluidNetwork& network);
  void send(const Message& message, Seconds now, FluidNetwork& network);
  void on_left(const Message& message, Seconds now, FluidNetwork& network);
  void on_arrival(const Message& message, Seconds now, FluidNetwork& network);
  FlowId new_flow(const Message& message);
};

}  // namespace tandem::sim
