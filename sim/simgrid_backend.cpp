#include "sim/simgrid_backend.h"

#include "sim/collective_cost.h"
#include "sim/kernel_cost.h"

namespace tandem {

void SimGridBackend::prepare(const Dag& dag, Completions& completions) {
  dag_ = &dag;
  completions_ = &completions;
  start_.resize(dag.tasks.size());
  const auto flow_ended = [this](TaskId task) {
    endings_.push({network_->clock(), task});
    wake_for_next_ending();
  };
  network_.emplace(dag.links, dag.communicators, dag.ranks.size() * stream_count,
                   FluidNetwork::Callbacks{flow_ended, [this] { report_endings(); }});
}

void SimGridBackend::start(std::span<const TaskId> unit) {
  const TaskId id = unit.front();
  const Task& task = dag_->tasks[id];
  start_[id] = now_;
  if (!is_communication(task.op)) {
    endings_.push({now_ + kernel_time(dag_->device_of(task), operation(task.op).op_class, cost_of(*dag_, id)), id});
    return;
  }
  const Communicator& communicator = dag_->communicator_of(task);
  const CollectiveCost cost = collective_cost(task.op, dag_->groups[task.group].bytes, communicator.members.size(),
                                              communicator.layout, dag_->device_of(task).architecture);
  if (FluidNetwork::is_flow(cost, communicator.layout)) {
    // A stream runs one task at a time: its first member's stream is free for a flow.
    network_->start(id, task.rank * stream_count + static_cast<std::size_t>(task.stream), cost, communicator.layout);
  } else {
    endings_.push({now_ + cost.latency, id});
  }
}

void SimGridBackend::drive() {
  wake_for_next_ending();
  network_->run();
}

void SimGridBackend::report_endings() {
  while (!endings_.empty() && endings_.top().date <= network_->clock()) {
    const Ending ending = endings_.top();
    endings_.pop();
    now_ = ending.date;
    completions_->ended(ending.task, start_[ending.task], now_);
  }
  wake_for_next_ending();
}

void SimGridBackend::wake_for_next_ending() {
  if (!endings_.empty()) network_->wake_at(endings_.top().date);
}

}  // namespace tandem
