#include "runtime/analysis/kinds.h"

#include <algorithm>
#include <map>

#include "runtime/analysis/time_parts.h"

namespace tandem {
namespace {

/// Equal exactly where the names and phases of two tasks are: kernels may carry an axis that their names do not tell.
std::size_t index_of(const Task& task) {
  const auto axis = static_cast<std::size_t>(is_communication(task.op) ? task.axis : Axis::none);
  return (static_cast<std::size_t>(task.op) * axis_count + axis) * phase_count + static_cast<std::size_t>(task.phase);
}

/// Of a product.
double assumed_error(const Dag& dag, TaskId id) {
  const DType operands = dag.buffers[dag.operands_of(id).front().buffer].dtype;
  return dag.device_of(dag.tasks[id]).efficiency.gemm[static_cast<std::size_t>(operands)].assumed;
}

void sort_by_time(std::vector<KindTime>& kinds) { std::ranges::stable_sort(kinds, std::greater<>(), &KindTime::time); }

}  // namespace

std::string kind_of(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  std::string kind(operation(task.op).name);
  if (is_communication(task.op)) kind += " (" + std::string(name_of(task.axis)) + ")";
  return kind;
}

std::vector<KindTime> time_by_kind(const Dag& dag, const Timeline& timeline) {
  struct Sum {
    TaskId first = no_id;
    double count = 0;
    Seconds time = 0, assumed = 0;
  };
  std::vector<Sum> sums(op_kind_count * axis_count * phase_count);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const double ranks = dag.ranks[task.rank].count * timeline.times(id);
    Sum& sum = sums[index_of(task)];
    if (sum.first == no_id) sum.first = id;
    sum.count += ranks;
    sum.time += ranks * timeline.duration(id);
    if (operation(task.op).op_class == OpClass::gemm) sum.assumed += ranks * timeline.duration(id) * assumed_error(dag, id);
  }
  double ranks = 0;
  for (const Rank& rank : dag.ranks) ranks += rank.count;
  const double share = 1 / (ranks * dag.info.steps);
  std::vector<KindTime> kinds;
  for (const Sum& sum : sums) {
    if (sum.first == no_id) continue;
    kinds.push_back(
        {kind_of(dag, sum.first), dag.tasks[sum.first].phase, share * sum.count, share * sum.time, share * sum.assumed});
  }
  sort_by_time(kinds);
  return kinds;
}

std::vector<KindTime> weighted_sum(const std::vector<KindTime>& a, double a_weight, const std::vector<KindTime>& b,
                                   double b_weight) {
  std::map<std::pair<std::string, Phase>, KindTime> sums;
  const auto add = [&sums](const std::vector<KindTime>& kinds, double weight) {
    for (const KindTime& kind : kinds) {
      KindTime& sum = sums[{kind.name, kind.phase}];
      sum.name = kind.name;
      sum.phase = kind.phase;
      sum.count += weight * kind.count;
      sum.time += weight * kind.time;
      sum.assumed += weight * kind.assumed;
    }
  };
  add(a, a_weight);
  add(b, b_weight);
  std::vector<KindTime> kinds;
  for (auto& [key, kind] : sums) kinds.push_back(std::move(kind));
  sort_by_time(kinds);
  return kinds;
}

}  // namespace tandem
