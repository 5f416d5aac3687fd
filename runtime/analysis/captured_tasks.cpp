#include "runtime/analysis/captured_tasks.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tandem {
namespace {

bool mixes_positions(OpKind op) {
  switch (op) {
    case OpKind::attention:
    case OpKind::softmax:  // of unfused attention
    case OpKind::sparse_attention:
    case OpKind::lightning_attention:
    case OpKind::ssd_scan:
    case OpKind::delta_rule:
      return true;
    default:
      return false;
  }
}

bool adds_residual(OpKind op) { return op == OpKind::add || op == OpKind::dropout_add || op == OpKind::hyper_merge; }

/// A kernel, or what tensor- and context-parallel ranks exchange between kernels of one layer.
bool can_be_captured(const Task& task) { return !is_communication(task.op) || task.axis == Axis::tp || task.axis == Axis::cp; }

/// All tasks of a layer and a micro-batch.
using TasksOfLayer = std::vector<TaskId>;

/// A micro-batch that comes again after its backward is one of the next step.
std::vector<TasksOfLayer> groups_of_layers(const Dag& dag) {
  struct Open {
    std::size_t group = 0;
    bool went_back = false;
  };
  std::map<std::tuple<RankIndex, std::int16_t, std::int16_t, std::int32_t>, Open> open;
  std::vector<TasksOfLayer> groups;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.layer < 0 || task.micro_batch < 0 || task.phase == Phase::optimizer) continue;
    const auto [found, is_new] = open.try_emplace({task.rank, task.chunk, task.layer, task.micro_batch});
    Open& of = found->second;
    const bool forward = task.phase == Phase::forward;
    if (is_new || (forward && of.went_back)) {
      of = {.group = groups.size(), .went_back = false};
      groups.emplace_back();
    }
    of.went_back |= !forward;
    groups[of.group].push_back(id);
  }
  return groups;
}

/// The last captured task of a layer's forward; no_id where none is.
TaskId end_of_forward(const Dag& dag, const TasksOfLayer& group) {
  TaskId router = no_id, sum = no_id;
  bool mixed = false;
  for (const TaskId id : group) {
    const Task& task = dag.tasks[id];
    if (task.phase != Phase::forward) continue;
    if (task.op == OpKind::route) router = id;
    mixed |= mixes_positions(task.op);
    if (mixed && sum == no_id && adds_residual(task.op)) sum = id;
  }
  return router == no_id ? sum : router;
}

/// Backward tasks have the names of the forward's. Some, as residual sums, stand on both sides of the end.
GraphCallable callable_of_layer(const Dag& dag, const TasksOfLayer& group) {
  GraphCallable callable;
  const TaskId end = end_of_forward(dag, group);
  if (end == no_id) return callable;
  std::set<std::uint16_t> names, names_behind;
  for (const TaskId id : group) {
    const Task& task = dag.tasks[id];
    if (task.phase != Phase::forward) continue;
    if (id > end) {
      names_behind.insert(task.name);
    } else if (can_be_captured(task)) {
      names.insert(task.name);
      callable.forward.push_back(id);
    }
  }
  for (const TaskId id : group) {
    const Task& task = dag.tasks[id];
    if (task.phase == Phase::forward || !can_be_captured(task) || !names.contains(task.name)) continue;
    if (!callable.backward.empty() || !names_behind.contains(task.name)) callable.backward.push_back(id);
  }
  return callable;
}

std::vector<GraphCallable> callables_of_step(const Dag& dag) {
  std::vector<GraphCallable> callables(dag.ranks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.phase == Phase::optimizer) continue;
    GraphCallable& callable = callables[task.rank];
    (task.phase == Phase::forward ? callable.forward : callable.backward).push_back(id);
  }
  return callables;
}

}  // namespace

HeldGraphs held_graphs(const Software& software) {
  if (software.captured.empty()) return HeldGraphs::none;
  return software.issues_for_free() ? HeldGraphs::step : HeldGraphs::layers;
}

CapturedTasks captured_tasks(const Dag& dag) {
  CapturedTasks captured;
  const HeldGraphs held = held_graphs(dag.software);
  if (held == HeldGraphs::none) return captured;
  if (held == HeldGraphs::step) {
    captured.callables = callables_of_step(dag);
  } else {
    for (const TasksOfLayer& group : groups_of_layers(dag))
      if (GraphCallable callable = callable_of_layer(dag, group); !callable.forward.empty())
        captured.callables.push_back(std::move(callable));
  }
  captured.on_rank.resize(dag.ranks.size());
  captured.callable_of.assign(dag.tasks.size(), no_id);
  for (std::uint32_t i = 0; i < captured.callables.size(); ++i) {
    const auto& [forward, backward] = captured.callables[i];
    for (const auto* tasks : {&forward, &backward})
      for (const TaskId id : *tasks) captured.callable_of[id] = i;
    if (!forward.empty()) captured.on_rank[dag.tasks[forward.front()].rank].push_back(i);
  }
  return captured;
}

}  // namespace tandem
