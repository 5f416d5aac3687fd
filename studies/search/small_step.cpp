#include "studies/search/small_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <ranges>
#include <utility>

#include "runtime/plan/issue_order.h"
#include "scenarios/mesh/slowest_gpu.h"
#include "sim/collective_cost.h"
#include "sim/contention.h"
#include "sim/kernel_times.h"

namespace tandem::studies {
namespace {

/// Data-parallel ranks so that experts find their ranks and the ranks fill whole nodes.
std::int64_t least_dp(const ParallelismSpec& p, std::int64_t node) {
  for (std::int64_t dp = 1;; ++dp) {
    const std::int64_t of_stage = p.tp * p.cp * dp;
    const std::int64_t world = of_stage * p.pp * (p.own_expert_axis ? p.ep : 1);
    const bool holds_experts = of_stage % p.expert_shards() == 0;
    if (holds_experts && (world <= node || world % node == 0)) return dp;
  }
}

bool depends_on_documents(OpKind op) {
  return op == OpKind::attention || op == OpKind::attention_backward || op == OpKind::softmax;
}

/// Whether groups of experts' ranks have equal parts in all their nodes, wherever they are: else DeepEP's rows go as in any
/// exchange.
bool fills_nodes_evenly(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const auto is_even = [](std::int64_t count) { return std::has_single_bit(static_cast<std::uint64_t>(count)); };
  return p.placement.is_packed() && scenario.cluster.other_gpus.empty() &&
         std::ranges::all_of(std::array{p.tp, p.cp, p.ep, p.etp, p.pp, p.dp, scenario.cluster.gpus_per_node}, is_even);
}

}  // namespace

Scenario on_small_cluster(Scenario s, std::int64_t stages) {
  ParallelismSpec& p = s.parallelism;
  p.pp = stages;
  p.zero = 0;
  p.hsdp = 0;
  p.order = ParallelismSpec{}.order;
  p.placement = {};
  if (std::exchange(p.dynamic_cp, false)) {  // at best every rank has documents of its own
    s.training.sequence /= p.cp;
    p.cp = 1;
  }
  p.dp = least_dp(p, s.cluster.gpus_per_node);
  s.cluster.gpus = p.world_size();
  s.cluster.other_gpus.clear();
  s.cluster.link_faults.clear();
  s.cluster.fabric.routing = FlowRouting::adaptive;
  if (s.cluster.fabric.kind == FabricSpec::Kind::custom) s.cluster.fabric = {.kind = FabricSpec::Kind::one_switch};
  s.slow_gpus.clear();
  TrainingSpec& t = s.training;
  t.overlap_pp = true;  // what stages wait for is the schedule's
  t.sync_every = 1;
  t.hierarchical_all_reduce = false;
  t.offload = {};
  t.compressor = {};  // what its kernels take comes on top
  t.bucket_parameters = std::numeric_limits<std::int64_t>::max();
  return s;
}

bool packs_alike(const Scenario& scenario) {
  const auto within_stage = [](std::vector<Axis> order) {
    std::erase_if(order, [](Axis axis) { return axis == Axis::dp || axis == Axis::pp; });
    return order;
  };
  const ParallelismSpec& p = scenario.parallelism;
  return p.placement.is_packed() && within_stage(p.order) == within_stage(ParallelismSpec{}.order);
}

IdlePaths::IdlePaths(Dag& dag, const Scenario& original) : dag_(dag) {
  const auto world_size = static_cast<std::size_t>(original.parallelism.world_size());
  for (Device& device : dag.devices) device.speed = slowest_of(world_size, device.efficiency.spread) / device.site.kernels;
  const bool is_alike = packs_alike(original);
  order_ = issue_order(dag_);
  kernels_.emplace(dag_);
  CollectiveCosts costs(dag_);
  const bool is_even = fills_nodes_evenly(original);
  duration_.resize(dag_.tasks.size());
  least_taken_.resize(dag_.tasks.size());
  for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
    const Task& task = dag_.tasks[id];
    // Between stages the bounds count the way that the real mesh has; gradients are cleared once in a step.
    if (task.axis == Axis::pp || dag_.name_of_task(id) == "clear gradients")
      duration_[id] = 0;
    else if (original.training.documents.any() && depends_on_documents(task.op))
      duration_[id] = 0;  // other micro-batches may have less to attend to
    else if (is_communication(task.op)) {
      const CollectiveCost& cost = costs.of(task);
      if (is_even && sends_tokens_once(dag_.communicator_of(task).layout.paths[cost.paths].algorithm))
        least_taken_[id] = cost.occupation.multiprocessors;
      duration_[id] = is_alike || dag_.communicator_of(task).layout.nodes < 2
                          ? uncontended_time(cost, dag_.communicator_of(task).layout, dag_.links)
                          : 0;
    } else {
      duration_[id] = kernels_->of(id) * sim::slowdown_beside(dag_, *kernels_, id, {});
    }
  }
}

double IdlePaths::loss(TaskId kernel, std::int32_t multiprocessors) const {
  const auto slowdown = [&](const sim::Occupation& taken) { return sim::slowdown_beside(dag_, *kernels_, kernel, taken); };
  return std::max(0.0, 1 - slowdown({}) / slowdown({.multiprocessors = multiprocessors}));
}

IdlePaths::Reached IdlePaths::from(TaskId source, bool from_end) const {
  constexpr Seconds never = -std::numeric_limits<Seconds>::infinity();
  Reached reached{.start = std::vector<Seconds>(dag_.tasks.size(), never), .end = std::vector<Seconds>(dag_.tasks.size(), never)};
  for (const TaskId member : dag_.unit_of(source)) reached.start[member] = from_end ? -duration_[source] : 0;
  for (const TaskId first : order_) {
    Seconds start = never;
    for (const TaskId member : dag_.unit_of(first)) start = std::max(start, reached.start[member]);
    if (start == never) continue;
    const Seconds end = start + duration_[first];
    for (const TaskId member : dag_.unit_of(first)) {
      reached.start[member] = start;
      reached.end[member] = end;
      for (const TaskId next : dag_.graph.successors(member)) reached.start[next] = std::max(reached.start[next], end);
      const auto [apart, apart_end] = apart_.equal_range(member);
      for (const auto& [later, least] : std::ranges::subrange(apart, apart_end) | std::views::values)
        reached.start[later] = std::max(reached.start[later], end + least);
    }
  }
  return reached;
}

}  // namespace tandem::studies
