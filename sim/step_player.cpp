#include "sim/step_player.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/divide_up.h"

namespace tandem::sim {

StepPlayer::StepPlayer(const Dag& dag, const Speedup& speedup, std::function<void(TaskId, Seconds)> ended)
    : dag_(dag), speedup_(speedup), costs_(dag, speedup), ended_(std::move(ended)) {}

std::size_t StepPlayer::lanes(const Dag& dag) {
  std::set<std::tuple<CommunicatorId, RankIndex, Stream>> known;
  std::size_t lanes = 0;
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const Task& first = dag.tasks[dag.members_of(g).front()];
    if (!known.emplace(dag.groups[g].communicator, first.rank, first.stream).second) continue;
    std::size_t most = 1;
    for (const Paths& paths : dag.communicator_of(first).layout.paths) most = std::max(most, paths.hops.size());
    lanes += most;
  }
  return lanes;
}

void StepPlayer::begin(TaskId task, Seconds now) {
  if (free_running_.empty()) {
    free_running_.push_back(static_cast<std::uint32_t>(running_.size()));
    running_.emplace_back();
  }
  const std::uint32_t id = free_running_.back();
  free_running_.pop_back();
  Running& running = running_[id];

  const Task& member = dag_.tasks[task];
  const Communicator& communicator = dag_.communicator_of(member);
  const Bytes bytes = at_pace(dag_.groups[member.group].bytes, costs_.pace_of(member));
  const CollectiveCost& cost = costs_.of(member);
  running.task = task;
  running.paths = &communicator.layout.paths[cost.paths];
  running.steps = chunk_steps(member.op, bytes, communicator.members.size(), communicator.layout, cost);

  const ChunkSteps& steps = running.steps;
  running.left = std::max<std::size_t>(1, steps.hops.size()) * steps.messages;
  running.waits.assign(running.left, 0);
  for (std::size_t hop = 0; hop < steps.hops.size(); ++hop) {
    for (std::uint32_t i = 0; i < steps.messages; ++i)
      running.waits[hop * steps.messages + i] = (i > 0 ? 1 : 0) + (i >= steps.shift ? steps.before[hop] : 0);
  }
  events_.push({now + steps.start, What::begin, {.running = id}});
}

void StepPlayer::play(Seconds now, FluidNetwork& network) {
  while (is_due(now)) {
    const Event event = events_.top();
    events_.pop();
    if (event.what == What::left) {
      on_left(event.message, event.date, network);
    } else if (event.what == What::arrived) {
      on_arrival(event.message, event.date, network);
    } else {
      const Running& running = running_[event.message.running];
      std::vector<Message> first;
      for (std::uint32_t i = 0; i < running.waits.size(); i += running.steps.messages) {
        if (running.waits[i] == 0) first.push_back({event.message.running, i / running.steps.messages, 0});
      }
      for (const Message& message : first) send(message, event.date, network);
    }
  }
}

void StepPlayer::release(const Message& message, Seconds now, FluidNetwork& network) {
  Running& running = running_[message.running];
  if (message.number >= running.steps.messages) return;
  if (--running.waits[std::size_t{message.hop} * running.steps.messages + message.number] == 0) send(message, now, network);
}

void StepPlayer::send(const Message& message, Seconds now, FluidNetwork& network) {
  const Running& running = running_[message.running];
  const ChunkSteps& steps = running.steps;
  const bool whole = steps.hops.empty();
  const std::vector<Crossing>& crossings = whole ? running.paths->crossings : steps.hops[message.hop].crossings;
  const Bytes parts = whole ? 1 : steps.hops[message.hop].parts;
  const Bytes bytes = divide_up(steps.bytes_of(message.number), parts);
  if (bytes == 0 || std::ranges::none_of(crossings, [](const Crossing& c) { return c.multiplicity > 0; })) {
    events_.push({now, What::left, message});
    return;
  }
  const FlowId flow = new_flow(message);
  network.start(flow, flow, 0, bytes, crossings, steps.rate_limit);
}

FlowId StepPlayer::new_flow(const Message& message) {
  if (free_flows_.empty()) {
    in_flight_.push_back(message);
    return static_cast<FlowId>(in_flight_.size() - 1);
  }
  const FlowId flow = free_flows_.back();
  free_flows_.pop_back();
  in_flight_[flow] = message;
  return flow;
}

void StepPlayer::flow_ended(FlowId flow, Seconds now) {
  events_.push({now, What::left, in_flight_[flow]});
  free_flows_.push_back(flow);
}

void StepPlayer::on_left(const Message& message, Seconds now, FluidNetwork& network) {
  const ChunkSteps& steps = running_[message.running].steps;
  const Seconds latency = steps.hops.empty() ? 0 : steps.latency_of(steps.hops[message.hop]);
  events_.push({now + latency, What::arrived, message});
  release({message.running, message.hop, message.number + 1}, now, network);
}

void StepPlayer::on_arrival(const Message& message, Seconds now, FluidNetwork& network) {
  Running& running = running_[message.running];
  if (!running.steps.hops.empty()) {
    for (const std::uint32_t hop : running.steps.after[message.hop])
      release({message.running, hop, message.number + running.steps.shift}, now, network);
  }
  if (--running.left > 0) return;
  free_running_.push_back(message.running);
  ended_(running.task, now);
}

}  // namespace tandem::sim
