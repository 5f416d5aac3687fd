#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/checks.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

[[noreturn]] void refuse_mesh(const YamlNode& document, const std::string& sentence) {
  refuse(document, {"parallelism.dp", "cluster.gpus", "parallelism.tp", "parallelism.pp"}, sentence);
}

std::string replica_text(const ParallelismSpec& p) {
  return "tp " + std::to_string(p.tp) + " * pp " + std::to_string(p.pp) + " * cp " + std::to_string(p.cp) +
         (p.own_expert_axis ? " * ep " + std::to_string(p.ep) : "");
}

/// The GPUs of one model replica. Each factor is at most max_gpus, so no product overflows before it is refused.
std::int64_t replica_size(const ParallelismSpec& p, const YamlNode& document) {
  std::int64_t product = 1;
  for (const std::int64_t size : {p.tp, p.pp, p.cp, p.own_expert_axis ? p.ep : 1}) {
    product *= size;
    if (product > max_gpus)
      refuse_mesh(document, replica_text(p) + " is more than " + grouped(max_gpus) + " GPUs, the largest cluster");
  }
  return product;
}

}  // namespace

void complete_world(Scenario& scenario, const YamlNode& document) {
  ParallelismSpec& p = scenario.parallelism;
  std::int64_t& gpus = scenario.cluster.gpus;
  const std::int64_t replica = replica_size(p, document);
  const std::string replica_gpus = replica_text(p) + " = " + std::to_string(replica);
  if (gpus == 0 && p.dp == 0)
    refuse(document, {"cluster"}, "cluster.gpus and parallelism.dp are both missing, expected at least one of them");
  if (gpus == 0 && p.dp > max_gpus / replica)
    refuse_mesh(document, replica_gpus + " * dp " + std::to_string(p.dp) + " is more than " + grouped(max_gpus) +
                              " GPUs, the largest cluster");
  if (gpus == 0) gpus = replica * p.dp;
  // A placement that is listed may leave GPUs to others, where dp says how many ranks there are.
  const bool may_leave_some = p.dp > 0 && p.placement.kind == RankPlacement::Kind::listed;
  if (may_leave_some && p.dp <= gpus / replica) return;
  if (gpus % replica != 0)
    refuse(document, {"cluster.gpus", "parallelism.tp", "parallelism.pp"},
           replica_gpus + " does not divide " + std::to_string(gpus) +
               " GPUs; nearest numbers of GPUs that it divides: " + joined(nearest_multiples(replica, gpus)));
  if (p.dp == 0) p.dp = gpus / replica;
  if (p.dp != gpus / replica)
    refuse_mesh(document, replica_gpus + " * dp " + std::to_string(p.dp) + " makes " + std::to_string(replica * p.dp) +
                              " ranks for " + std::to_string(gpus) + " GPUs, expected dp " + std::to_string(gpus / replica));
}

}  // namespace tandem::scenarios
