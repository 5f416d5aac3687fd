#include "sim/simgrid_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/fetch_ahead.h"
#include "runtime/base/parallel.h"
#include "sim/collective_cost.h"

namespace tandem::sim {
namespace {

constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

}  // namespace

void SimGridBackend::prepare(const Dag& dag, Completions& completions) {
  dag_ = &dag;
  completions_ = &completions;
  in_parallel(2, [&](std::size_t part) {  // neither asks for the other
    if (part == 0 && order_ == nullptr) order_ = &own_order_.emplace(dag);
    if (part == 1 && costs_ == nullptr) costs_ = &own_costs_.emplace(dag, speedup_);
  });
  contention_.emplace(dag, costs_->kernels, [this](TaskId task, Seconds date) { endings_.push({date, task}); });
  start_.resize(dag.ranks.size() * stream_count);
  if (order_->host) {
    host_.emplace(order_->host);
    parked_.assign(dag.tasks.size(), false);
  }
  if (collectives_ == Collectives::steps) {
    steps_.emplace(dag, speedup_, [this](TaskId task, Seconds date) { endings_.push({date, task}); });
  }
  if (!steps_) lone_.emplace(dag.links.size(), dag.ranks.size() * stream_count);
  const auto flow_ended = [this](FlowId flow) {
    steps_ ? steps_->flow_ended(flow, network_->clock()) : endings_.push({network_->clock(), flow});
    wake_for_next();
  };
  if (jitter_) {
    factor_.resize(dag.ranks.size() * stream_count);
    for (const Rank& rank : dag.ranks) rank_factor_.push_back(jitter_->rank(rank.world_rank));
    if (std::ranges::any_of(dag.ranks, [](const Rank& rank) { return rank.count > 1; })) {
      arrivals_.emplace(dag, *jitter_, *pilots_);
      begins_.assign(dag.tasks.size(), never);
    }
  }
  FluidNetwork::Callbacks callbacks{flow_ended, [this] { report_endings(); }};
  if (network_) return network_->begin_anew(std::move(callbacks));
  const std::size_t lanes = steps_ ? StepPlayer::lanes(dag) : dag.ranks.size() * stream_count;
  network_ =
      make_fluid_network({.links = costs_->links, .communicators = dag.communicators, .lanes = lanes}, std::move(callbacks));
}

void SimGridBackend::start(std::span<const TaskId> unit) { host_ ? begin_when_issued(unit.front()) : begin(unit.front()); }

void SimGridBackend::begin_when_issued(TaskId id) {
  Seconds issued = now_;
  for (const TaskId member : dag_->unit_of(id)) {
    parked_[id] = !host_->is_dated(member);
    if (parked_[id]) return;
    issued = std::max(issued, host_->issued(member));
  }
  if (issued > now_) {
    beginnings_.push({issued, id});
  } else {
    begin(id);
  }
}

void SimGridBackend::begin(TaskId id) {
  const Task& task = dag_->tasks[id];
  if (!is_communication(task.op)) return begin_kernels(id);
  if (arrivals_ && awaits_members(id)) return;
  CollectiveCost cost = costs_->collectives.of(task);
  if (jitter_) {
    const double factor = factor_[lane_of(id)] = communication_factor(id);
    cost.latency *= factor;
    cost.bytes_per_channel = std::llround(static_cast<double>(cost.bytes_per_channel) * factor);
  }
  const Layout& layout = dag_->communicator_of(task).layout;
  start_[lane_of(id)] = now_;
  contention_->begin_communication(dag_->unit_of(id), cost.occupation, now_);
  if (steps_) return steps_->begin(id, now_);
  if (FluidNetwork::is_flow(cost, layout)) return begin_flow(id, cost, layout);
  endings_.push({now_ + cost.latency, id});
}

void SimGridBackend::begin_flow(TaskId id, const CollectiveCost& cost, const Layout& layout) {
  const LoneFlows::Flow flow{.task = id,
                             .lane = lane_of(id),
                             .latency = cost.latency,
                             .bytes = static_cast<double>(cost.bytes_per_channel),
                             .crossings = costs_->binding.of(dag_->groups[dag_->tasks[id].group].communicator, cost.paths),
                             .rate_limit = cost.rate_limit};
  const Seconds alone = uncontended_time(cost, layout, costs_->links);
  if (lone_->begin(flow, alone, now_)) return endings_.push({now_ + alone, id});
  const auto start = [&](const LoneFlows::Flow& one) {
    network_->start(one.task, one.lane, one.latency, one.bytes, one.crossings, one.rate_limit);
  };
  std::ranges::for_each(lone_->met(), start);
  start(flow);
}

void SimGridBackend::begin_kernels(TaskId id) {
  turns_.clear();
  if (jitter_) {
    turns_.push_back(drawn_turn_of(id));
  } else {
    turns_.push_back(turn_of(id, now_));
    const Chains& chains = order_->chains;
    for (TaskId next = chains.next(id); next != no_id && (!host_ || host_->is_dated(next)); next = chains.next(next))
      turns_.push_back(turn_of(next, host_ ? host_->issued(next) : now_));
  }
  endings_.push({contention_->begin_run(turns_), turns_.back().task});
}

Turn SimGridBackend::turn_of(TaskId id, Seconds not_before) const {
  fetch_ahead(dag_->kernels.of_task, id);
  const Task& task = dag_->tasks[id];
  return {
      .task = id, .alone = costs_->kernels.of(id) / speedup_.of_kernel(task, dag_->ranks[task.rank]), .not_before = not_before};
}

Turn SimGridBackend::drawn_turn_of(TaskId id) {
  Turn turn = turn_of(id, now_);
  const Seconds undisturbed = turn.alone;
  const RankIndex rank = dag_->tasks[id].rank;
  turn.alone *= rank_factor_[rank] * jitter_->kernel(dag_->ranks[rank].world_rank, id);
  if (arrivals_) {
    if (host_) arrivals_->waited_for_host(id, host_->issued(id));
    arrivals_->compute(id, undisturbed, turn.alone);
  }
  return turn;
}

bool SimGridBackend::awaits_members(TaskId id) {
  Seconds& date = begins_[id];
  if (date != never) return false;
  const std::span<const TaskId> unit = dag_->unit_of(id);
  if (host_)
    for (const TaskId member : unit) arrivals_->waited_for_host(member, host_->issued(member));
  date = arrivals_->meet(unit, now_);
  if (date <= now_) return false;
  beginnings_.push({date, id});
  return true;
}

double SimGridBackend::communication_factor(TaskId id) const {
  return jitter_->communication(dag_->ranks[dag_->tasks[id].rank].world_rank, id);
}

/// A stream runs one task at a time: its first member's stream is free for a flow.
std::uint32_t SimGridBackend::lane_of(TaskId id) const {
  const Task& task = dag_->tasks[id];
  return task.rank * static_cast<std::uint32_t>(stream_count) + static_cast<std::uint32_t>(task.stream);
}

void SimGridBackend::drive() {
  wake_for_next();
  network_->run();
}

/// SimGrid's clock is a sum of steps, so flows that are alike may end some roundings apart, one of them in the network and the
/// other alone. Taken for what they are, the contention of many stages lets a rounding grow to a hundredth of a step.
Seconds SimGridBackend::end_of_flow(Seconds date) const {
  constexpr Seconds indistinct = 1e-11;
  return date - now_ < indistinct ? now_ : date;
}

bool SimGridBackend::has_ended(Ending& ending) {
  if (!is_communication(dag_->tasks[ending.task].op)) {
    ended_run_ = contention_->end_run(ending.task, ending.date);
    return !ended_run_.empty();
  }
  if (lone_ && !lone_->end(ending.task, lane_of(ending.task), ending.date)) return false;
  if (lone_) ending.date = end_of_flow(ending.date);
  contention_->end_communication(dag_->unit_of(ending.task), ending.date);
  return true;
}

void SimGridBackend::report(const Ending& ending) {
  now_ = ending.date;
  const bool communicates = is_communication(dag_->tasks[ending.task].op);
  if (arrivals_) {
    const std::span<const TaskId> unit = dag_->unit_of(ending.task);
    if (communicates && jitter_->variation().communication > 0) {
      const Seconds time = now_ - start_[lane_of(ending.task)];
      arrivals_->communicate(unit, time / factor_[lane_of(ending.task)], time);
    }
    arrivals_->ended(unit, now_);
  }
  if (!communicates)
    for (const Turn& turn : ended_run_.first(ended_run_.size() - 1)) completions_->passed(turn.task, turn.start, turn.end);
  const Seconds start = communicates ? start_[lane_of(ending.task)] : ended_run_.back().start;
  if (!host_) return completions_->ended(ending.task, start, now_);
  const std::vector<TaskId> issued = host_->ended(ending.task, now_);
  completions_->ended(ending.task, start, now_);
  for (const TaskId id : issued)
    if (const TaskId first = dag_->unit_of(id).front(); parked_[first]) begin_when_issued(first);
}

void SimGridBackend::report_endings() {
  do {
    if (steps_) steps_->play(network_->clock(), *network_);
    while (next_date() <= network_->clock()) {
      const bool ends = beginnings_.empty() || (!endings_.empty() && endings_.top().date <= beginnings_.top().date);
      Dates& dates = ends ? endings_ : beginnings_;
      Ending next = dates.top();
      dates.pop();
      if (!ends) {
        now_ = next.date;
        begin(next.task);
      } else if (has_ended(next)) {
        report(next);
      }
    }
  } while (steps_ && steps_->is_due(network_->clock()));
  wake_for_next();
}

Seconds SimGridBackend::next_date() const {
  return std::min(endings_.empty() ? never : endings_.top().date, beginnings_.empty() ? never : beginnings_.top().date);
}

void SimGridBackend::wake_for_next() {
  const Seconds date = next_date();
  const bool playing = steps_ && !steps_->is_idle();
  if (playing && steps_->next() < date) {
    network_->wake_at(steps_->next());
  } else if (!endings_.empty() || !beginnings_.empty()) {
    network_->wake_at(date);
  }
}

}  // namespace tandem::sim
