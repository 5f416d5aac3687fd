#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"
#include "scenarios/spec/limits.h"

namespace tandem::scenarios {
namespace {

Objection wrong_mesh(const std::string& sentence) {
  return {{"parallelism.dp", "cluster.gpus", "parallelism.tp", "parallelism.pp"}, sentence};
}

std::string replica_text(const ParallelismSpec& p) {
  return named(Axis::tp, p.tp) + " * " + named(Axis::pp, p.pp) + " * " + named(Axis::cp, p.cp) +
         (p.own_expert_axis ? " * " + named(Axis::ep, p.ep) : "");
}

/// The GPUs of one model replica, or none where these are more than the largest cluster has. Each factor is at most max_gpus, so
/// that no product overflows before it is refused.
std::optional<std::int64_t> replica_size(const ParallelismSpec& p) {
  std::int64_t product = 1;
  for (const std::int64_t size : {p.tp, p.pp, p.cp, p.own_expert_axis ? p.ep : 1}) {
    product *= size;
    if (product > max_gpus) return {};
  }
  return product;
}

std::optional<Objection> find_wrong_world(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::optional<std::int64_t> size = replica_size(p);
  if (!size) return wrong_mesh(replica_text(p) + " is more than " + grouped(max_gpus) + " GPUs, the largest cluster");
  const std::int64_t replica = *size;
  const std::string replica_gpus = replica_text(p) + " = " + std::to_string(replica);
  if (scenario.cluster.gpus == 0 && p.dp == 0)
    return Objection{{"cluster"}, "cluster.gpus and parallelism.dp are both missing, expected at least one of them"};
  if (scenario.cluster.gpus == 0 && p.dp > max_gpus / replica)
    return wrong_mesh(replica_gpus + " * " + named(Axis::dp, p.dp) + " is more than " + grouped(max_gpus) +
                      " GPUs, the largest cluster");
  const std::int64_t gpus = scenario.cluster.gpus == 0 ? replica * p.dp : scenario.cluster.gpus;
  // A placement that is listed may leave GPUs to others, where dp says how many ranks there are.
  const bool may_leave_some = p.dp > 0 && p.placement.kind == RankPlacement::Kind::listed;
  if (may_leave_some && p.dp <= gpus / replica) return {};
  if (gpus % replica != 0)
    return Objection{{"cluster.gpus", "parallelism.tp", "parallelism.pp"},
                     replica_gpus + " does not divide " + std::to_string(gpus) +
                         " GPUs; nearest numbers of GPUs that it divides: " + joined(nearest_multiples(replica, gpus))};
  if (p.dp != 0 && p.dp != gpus / replica)
    return wrong_mesh(replica_gpus + " * " + named(Axis::dp, p.dp) + " makes " + std::to_string(replica * p.dp) + " ranks for " +
                      std::to_string(gpus) + " GPUs, expected " + named(Axis::dp, gpus / replica));
  return {};
}

constexpr Rule rules_of_world[] = {rule_of<find_wrong_world>};

}  // namespace

std::span<const Rule> world_rules() { return rules_of_world; }

}  // namespace tandem::scenarios
