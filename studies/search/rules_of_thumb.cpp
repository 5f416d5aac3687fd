#include "studies/search/rules_of_thumb.h"

#include "scenarios/mesh/mesh.h"

namespace tandem::studies {
namespace {

/// Whether groups of ranks along these axes cross from node to node, as ranks lie one after the other.
bool leaves_the_node(const Plan& plan, const PlanChoices& choices, std::int64_t node, const std::vector<Axis>& axes) {
  if (plan.gpus <= node) return false;
  ParallelismSpec p;
  p.tp = plan.tp;
  p.pp = plan.pp;
  p.cp = plan.cp;
  p.dp = plan.dp;
  p.order = choices.orders[static_cast<std::size_t>(plan.order)];
  const Mesh mesh(p);
  std::int64_t block = 1;
  bool alone = true;
  for (const Axis axis : axes) {
    if (mesh.extent(axis) == 1) continue;
    alone = false;
    block = std::max(block, mesh.stride(axis) * mesh.extent(axis));
  }
  if (alone) return false;
  return !choices.placements[static_cast<std::size_t>(plan.placement)].is_packed() || node % block != 0;
}

}  // namespace

std::vector<RuleOfThumb> rules_of_thumb(const SearchSpec& spec, const PlanChoices& choices, std::int64_t least_pp) {
  const Scenario& scenario = spec.scenario;
  const std::int64_t node = scenario.cluster.gpus_per_node, batch = scenario.training.global_batch;
  const bool own_axis = scenario.parallelism.own_expert_axis;
  const auto micro_batches = [=](const Plan& plan) { return batch / (plan.dp * (own_axis ? plan.ep : 1) * plan.micro_batch); };
  std::vector<RuleOfThumb> rules{
      {"tp inside the node", [=, &choices](const Plan& plan) { return leaves_the_node(plan, choices, node, {Axis::tp}); }},
      {"tp * cp inside the node",
       [=, &choices](const Plan& plan) {
         return plan.cp > 1 && leaves_the_node(plan, choices, node, {Axis::tp, Axis::cp});
       }},
      {"sp with tp", [](const Plan& plan) { return plan.tp > 1 && plan.sp == 0; }},
      {"pp no more than memory needs", [=](const Plan& plan) { return plan.pp > least_pp; }},
      {"micro-batches >= 4 pp", [=](const Plan& plan) { return plan.pp > 1 && micro_batches(plan) < 4 * plan.pp; }},
      {"micro_batch 1 in a pipeline", [](const Plan& plan) { return plan.pp > 1 && plan.micro_batch > 1; }},
      {"zero <= 1 in a pipeline", [](const Plan& plan) { return plan.pp > 1 && plan.zero > 1; }},
  };
  if (scenario.model.moe.experts > 0)
    rules.push_back({"ep * etp inside the node", [=](const Plan& plan) { return plan.ep * plan.etp > node; }});
  return rules;
}

}  // namespace tandem::studies
