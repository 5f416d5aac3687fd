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
  const std::size_t streams = dag.ranks.size() * stream_count;
  const auto ends_at = [this](TaskId task, Seconds date) { end_at(task, date); };
  endings_.emplace(streams);
  contention_.emplace(dag, costs_->kernels, speedup_, ends_at);
  start_.resize(streams);
  if (order_->host) host_.emplace(order_->host);
  if (collectives_ == Collectives::steps) steps_.emplace(dag, speedup_, ends_at);
  if (!steps_) lone_.emplace(dag.links.size(), streams);
  const auto flow_ended = [this](FlowId flow) {
    steps_ ? steps_->flow_ended(flow, network_->clock()) : end_at(flow, network_->clock());
    wake_for_next();
  };
  if (jitter_) {
    factor_.resize(streams);
    for (const Rank& rank : dag.ranks) rank_factor_.push_back(jitter_->rank(rank.world_rank));
    if (std::ranges::any_of(dag.ranks, [](const Rank& rank) { return rank.count > 1; })) {
      arrivals_.emplace(dag, *jitter_, *pilots_);
      begins_.assign(dag.tasks.size(), never);
    }
  }
  FluidNetwork::Callbacks callbacks{flow_ended, [this] { report_endings(); }};
  if (network_) return network_->begin_anew(std::move(callbacks));
  const std::size_t lanes = steps_ ? StepPlayer::lanes(dag) : streams;
  network_ =
      make_fluid_network({.links = costs_->links, .communicators = dag.communicators, .lanes = lanes}, std::move(callbacks));
}

void SimGridBackend::start(std::span<const TaskId> unit) { host_ ? begin_when_issued(unit.front()) : begin(unit.front()); }

void SimGridBackend::begin_when_issued(TaskId id) {
  Seconds issued = now_;
  for (const TaskId member : dag_->unit_of(id)) {
    if (!host_->is_dated(member)) return host_->await(member);
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
  end_at(id, now_ + cost.latency);
}

void SimGridBackend::begin_flow(TaskId id, const CollectiveCost& cost, const Layout& layout) {
  const LoneFlows::Flow flow{.task = id,
                             .lane = lane_of(id),
                             .latency = cost.latency,
                             .bytes = static_cast<double>(cost.bytes_per_channel),
                             .crossings = costs_->binding.of(dag_->groups[dag_->tasks[id].group].communicator, cost.paths),
                             .rate_limit = cost.rate_limit};
  const Seconds alone = uncontended_time(cost, layout, costs_->links);
  if (lone_->begin(flow, alone, now_)) return end_at(id, now_ + alone);
  const auto start = [&](const LoneFlows::Flow& one) {
    network_->start(one.task, one.lane, one.latency, one.bytes, one.crossings, one.rate_limit);
  };
  for (const LoneFlows::Flow& met : lone_->met()) {
    endings_->remove(met.lane);
    start(met);
  }
  start(flow);
}

void SimGridBackend::begin_kernels(TaskId id) {
  KernelRun run{.first = id, .last = id};
  if (jitter_) {
    run.factor = drawn_factor(id);
  } else {
    run.last = order_->chains.last(id);
    if (host_) {
      const std::size_t dated = host_->dated_among(id, run.last);
      run.last = id + static_cast<TaskId>(dated) - 1;
      if (host_->issued(run.last) > now_) run.not_before = host_->issued().subspan(id, dated);
    }
  }
  end_at(run.last, contention_->begin_run(run, now_));
}

double SimGridBackend::drawn_factor(TaskId id) {
  const RankIndex rank = dag_->tasks[id].rank;
  const double factor = rank_factor_[rank] * jitter_->kernel(dag_->ranks[rank].world_rank, id);
  if (arrivals_) {
    if (host_) arrivals_->waited_for_host(id, host_->issued(id));
    const Seconds undisturbed = contention_->alone(id);
    arrivals_->compute(id, undisturbed, undisturbed * factor);
  }
  return factor;
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
  if (is_prepared_) is_prepared_();
  wake_for_next();
  network_->run();
}

/// SimGrid's clock is a sum of steps, so flows that are alike may end some roundings apart, one of them in the network and the
/// other alone. Taken for what they are, the contention of many stages lets a rounding grow to a hundredth of a step.
Seconds SimGridBackend::end_of_flow(Seconds date) const {
  constexpr Seconds indistinct = 1e-11;
  return date - now_ < indistinct ? now_ : date;
}

void SimGridBackend::report(const LaneDates::Date& ending) {
  const bool communicates = is_communication(dag_->tasks[ending.task].op);
  now_ = communicates && lone_ ? end_of_flow(ending.at) : ending.at;
  communicates ? report_communication(ending) : report_kernels(ending.task);
}

void SimGridBackend::report_kernels(TaskId last) {
  const auto [starts, ends] = contention_->end_run(last);
  if (arrivals_) arrivals_->ended(dag_->unit_of(last), now_);
  const std::size_t before = ends.size() - 1;
  if (before > 0) completions_->passed(last - static_cast<TaskId>(before), starts.first(before), ends.first(before));
  tell_ended(last, starts.back());
}

void SimGridBackend::report_communication(const LaneDates::Date& ending) {
  const std::span<const TaskId> unit = dag_->unit_of(ending.task);
  if (lone_) lone_->end(ending.lane);
  contention_->end_communication(unit, now_);
  const Seconds start = start_[ending.lane];
  if (arrivals_) {
    if (jitter_->variation().communication > 0) arrivals_->communicate(unit, (now_ - start) / factor_[ending.lane], now_ - start);
    arrivals_->ended(unit, now_);
  }
  tell_ended(ending.task, start);
}

void SimGridBackend::tell_ended(TaskId id, Seconds start) {
  if (!host_) return completions_->ended(id, start, now_);
  const std::vector<TaskId>& issued = host_->ended(id, now_);
  completions_->ended(id, start, now_);
  for (const TaskId awaited : issued) begin_when_issued(dag_->unit_of(awaited).front());
}

void SimGridBackend::report_endings() {
  do {
    if (steps_) steps_->play(network_->clock(), *network_);
    while (next_date() <= network_->clock()) {
      const bool ends = beginnings_.empty() || (!endings_->empty() && endings_->first().at <= beginnings_.top().date);
      if (ends) {
        const LaneDates::Date ending = endings_->first();
        endings_->remove(ending.lane);
        fetch_what_ends_next();
        report(ending);
      } else {
        const Beginning next = beginnings_.top();
        beginnings_.pop();
        now_ = next.date;
        begin(next.task);
      }
    }
  } while (steps_ && steps_->is_due(network_->clock()));
  wake_for_next();
}

/// Ranks take turns, each with tasks of its own, which are not in the caches any more when its turn comes. While one is reported,
/// what will be asked of the next ones is on its way.
void SimGridBackend::fetch_what_ends_next() const {
  constexpr std::size_t on_their_way = 3;
  for (const LaneDates::Date& next : endings_->next(on_their_way)) {
    fetch(dag_->tasks, next.task + 1);
    fetch(dag_->graph.successors(next.task), 0);
  }
}

Seconds SimGridBackend::next_date() const {
  return std::min(endings_->empty() ? never : endings_->first().at, beginnings_.empty() ? never : beginnings_.top().date);
}

void SimGridBackend::wake_for_next() {
  const Seconds date = next_date();
  const bool playing = steps_ && !steps_->is_idle();
  if (playing && steps_->next() < date) {
    network_->wake_at(steps_->next());
  } else if (!endings_->empty() || !beginnings_.empty()) {
    network_->wake_at(date);
  }
}

}  // namespace tandem::sim
