#include "runtime/analysis/traffic.h"

#include <algorithm>

namespace tandem {
namespace {

double sent_by(const Dag& dag, const Task& task) {
  return sent_bytes(task.op, dag.groups[task.group].bytes, dag.communicator_of(task).members.size());
}

/// One layer on one rank of the DAG.
struct Part {
  AxisValues sent{};
  double kept = 0;
  std::vector<bool> seen;    ///< by micro-batch: its forward ran here
  double micro_batches = 0;  ///< that these stand for

  void saw_forward_of(std::int32_t micro_batch, double times) {
    const auto place = static_cast<std::size_t>(micro_batch);
    if (place >= seen.size()) seen.resize(place + 1);
    if (seen[place]) return;
    seen[place] = true;
    micro_batches += times;
  }
  double kept_of_micro_batch() const { return micro_batches > 0 ? kept / micro_batches : 0; }
};

bool is_forward(const Task& task) { return task.phase == Phase::forward; }
bool is_backward(const Task& task) {
  return task.phase == Phase::backward_input || task.phase == Phase::backward_weight || task.phase == Phase::recompute;
}

/// Follows buffers from the forward to the task that first reads them afterwards. Tasks of a rank lie in the order in which it
/// issues them.
class KeptBuffers {
 public:
  explicit KeptBuffers(const Dag& dag) : dag_(dag), states_(dag.buffers.size(), State::untouched) {}

  /// Returns the bytes that were kept for this task.
  double kept_for(TaskId id) {
    const Task& task = dag_.tasks[id];
    Bytes kept = 0;
    for (const Operand& operand : dag_.operands_of(id)) {
      const BufferId base = dag_.buffers[operand.buffer].base;
      if (is_persistent(dag_.buffers[base].kind)) continue;
      State& state = states_[base];
      if (state == State::untouched) {
        state = is_forward(task) && task.axis != Axis::dp ? State::of_forward : State::of_others;
      } else if (state == State::of_forward && is_backward(task)) {
        kept += dag_.buffers[base].bytes();
        state = State::of_others;
      }
    }
    return static_cast<double>(kept);
  }

 private:
  enum class State : std::uint8_t {
    untouched,
    of_forward,
    of_others  ///< first touched by other tasks, or counted
  };
  const Dag& dag_;
  std::vector<State> states_;
};

}  // namespace

double sent_bytes(OpKind op, Bytes bytes, std::size_t members) {
  const auto whole = static_cast<double>(bytes), n = static_cast<double>(members);
  switch (op) {
    case OpKind::all_reduce:
      return 2 * (n - 1) / n * whole;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::broadcast:
    case OpKind::reduce:
      return (n - 1) / n * whole;
    case OpKind::send:
      return whole;
    default:
      return 0;
  }
}

AxisValues sent_by_axis(const Dag& dag, const Timeline& timeline) {
  AxisValues sent{};
  double ranks = 0;
  for (const Rank& rank : dag.ranks) ranks += rank.count;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.group == no_id) continue;
    sent[static_cast<std::size_t>(task.axis)] += sent_by(dag, task) * dag.ranks[task.rank].count * timeline.times(id);
  }
  for (double& bytes : sent) bytes /= ranks * dag.info.steps;
  return sent;
}

std::vector<LayerTraffic> traffic_by_layer(const Dag& dag, const Timeline& timeline) {
  std::int16_t last = -1;
  for (const Task& task : dag.tasks) last = std::max(last, task.layer);
  const auto layers = static_cast<std::size_t>(last + 1);
  std::vector<std::vector<Part>> parts(dag.ranks.size());  // by rank and layer; empty where it holds none
  KeptBuffers buffers(dag);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const double times = timeline.times(id);
    const double kept = times * buffers.kept_for(id);
    if (task.layer < 0) continue;
    std::vector<Part>& of_rank = parts[task.rank];
    if (of_rank.empty()) of_rank.resize(layers);
    Part& part = of_rank[static_cast<std::size_t>(task.layer)];
    part.kept += kept;
    if (task.group != no_id && std::ranges::find(layer_axes, task.axis) != layer_axes.end())
      part.sent[static_cast<std::size_t>(task.axis)] += times * sent_by(dag, task);
    if (is_forward(task) && task.micro_batch >= 0) part.saw_forward_of(task.micro_batch, times);
  }

  std::vector<LayerTraffic> result;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    LayerTraffic traffic{.layer = static_cast<std::int32_t>(layer)};
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      if (parts[rank].empty() || parts[rank][layer].seen.empty()) continue;
      const Part& part = parts[rank][layer];
      const double count = dag.ranks[rank].count;
      traffic.ranks += dag.ranks[rank].count;
      traffic.kept += count * part.kept_of_micro_batch();
      for (std::size_t axis = 0; axis < axis_count; ++axis) traffic.sent[axis] += count * part.sent[axis];
    }
    if (traffic.ranks == 0) continue;
    const double share = 1 / (static_cast<double>(traffic.ranks) * dag.info.steps);
    traffic.kept *= share;
    for (double& bytes : traffic.sent) bytes *= share;
    result.push_back(traffic);
  }
  return result;
}

}  // namespace tandem
