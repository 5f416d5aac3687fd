#include "sim/simgrid_backend.h"

#include "sim/collective_cost.h"

namespace tandem {
namespace {

std::vector<Link> faster_links(std::vector<Link> links, const Speedup& speedup) {
  for (Link& link : links) link.capacity *= speedup.of_links(link.tier);
  return links;
}

}  // namespace

void SimGridBackend::prepare(const Dag& dag, Completions& completions) {
  dag_ = &dag;
  completions_ = &completions;
  kernel_times_.emplace(dag);
  start_.resize(dag.tasks.size());
  costs_.emplace(dag, speedup_);
  if (collectives_ == Collectives::steps) {
    steps_.emplace(dag, speedup_, [this](TaskId task, Seconds date) { endings_.push({date, task}); });
  }
  const auto flow_ended = [this](FlowId flow) {
    steps_ ? steps_->flow_ended(flow, network_->clock()) : endings_.push({network_->clock(), flow});
    wake_for_next();
  };
  network_.emplace(faster_links(dag.links, speedup_), dag.communicators,
                   steps_ ? StepPlayer::lanes(dag) : dag.ranks.size() * stream_count,
                   FluidNetwork::Callbacks{flow_ended, [this] { report_endings(); }});
}

void SimGridBackend::start(std::span<const TaskId> unit) {
  const TaskId id = unit.front();
  const Task& task = dag_->tasks[id];
  start_[id] = now_;
  if (!is_communication(task.op)) {
    endings_.push({now_ + kernel_times_->of(id) / speedup_.of_kernel(task, dag_->ranks[task.rank]), id});
    return;
  }
  if (steps_) return steps_->begin(id, now_);
  const Communicator& communicator = dag_->communicator_of(task);
  const CollectiveCost& cost = costs_->of(task);
  if (FluidNetwork::is_flow(cost, communicator.layout)) {
    // A stream runs one task at a time: its first member's stream is free for a flow.
    network_->start(id, task.rank * stream_count + static_cast<std::size_t>(task.stream), cost, communicator.layout);
  } else {
    endings_.push({now_ + cost.latency, id});
  }
}

void SimGridBackend::drive() {
  wake_for_next();
  network_->run();
}

void SimGridBackend::report_endings() {
  do {
    if (steps_) steps_->play(network_->clock(), *network_);
    while (!endings_.empty() && endings_.top().date <= network_->clock()) {
      const Ending ending = endings_.top();
      endings_.pop();
      now_ = ending.date;
      completions_->ended(ending.task, start_[ending.task], now_);
    }
  } while (steps_ && steps_->is_due(network_->clock()));
  wake_for_next();
}

void SimGridBackend::wake_for_next() {
  const bool playing = steps_ && !steps_->is_idle();
  if (playing && (endings_.empty() || steps_->next() < endings_.top().date)) {
    network_->wake_at(steps_->next());
  } else if (!endings_.empty()) {
    network_->wake_at(endings_.top().date);
  }
}

}  // namespace tandem
