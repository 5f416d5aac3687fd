#include <map>
#include <string>
#include <vector>

#include "runtime/base/nearest.h"
#include "scenarios/checks/checks.h"
#include "scenarios/mesh/data_blocks.h"
#include "scenarios/mesh/rank_placement.h"

namespace tandem::scenarios {
namespace {

void check_hsdp(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  if (p.hsdp == 0) return;
  const std::int64_t members = p.dp * p.cp;
  if (p.zero == 0)
    refuse(document, {"parallelism.hsdp", "parallelism.zero"},
           "hsdp " + std::to_string(p.hsdp) + " with zero 0, which has no slices, expected zero 1, 2 or 3");
  if (members % p.hsdp != 0)
    refuse(document, {"parallelism.hsdp", "parallelism.dp", "cluster.gpus"},
           "hsdp " + std::to_string(p.hsdp) + " does not divide the data-parallel group of " + std::to_string(members) +
               "; nearest that do: " + joined(nearest_divisors(members, p.hsdp)));
}

void check_hierarchy(const Scenario& scenario, const YamlNode& document) {
  if (!scenario.training.hierarchical_all_reduce) return;
  const auto refuse_here = [&](const std::string& sentence) {
    refuse(document, {"training.hierarchical_all_reduce", "parallelism.dp", "parallelism.order", "cluster.gpus_per_node"},
           "hierarchical_all_reduce " + sentence);
  };
  if (scenario.parallelism.hsdp > 0)
    refuse(document, {"training.hierarchical_all_reduce", "parallelism.hsdp"},
           "hierarchical_all_reduce with hsdp, which works in two levels already, expected at most one of the two");
  if (!scenario.parallelism.placement.is_packed() && !keeps_nodes_together(scenario))
    refuse(document, {"training.hierarchical_all_reduce", "parallelism.placement"},
           "hierarchical_all_reduce takes neighbouring ranks for a node's, expected parallelism.placement packed, or a list of "
           "whole nodes");
  const Mesh mesh(scenario.parallelism);
  const std::int64_t members = scenario.parallelism.dp * scenario.parallelism.cp;
  const std::int64_t on_node = data_members_on_node(scenario, mesh, 0);
  if (on_node < 2) refuse_here("with one member of the data-parallel group on a node, expected several");
  if (on_node == members) refuse_here("with the whole data-parallel group on one node, expected several nodes");
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
    const std::vector<std::uint32_t> group = mesh.members(rank, {Axis::cp, Axis::dp});
    if (group.front() != rank) continue;
    std::map<std::int64_t, std::int64_t> by_node;
    for (const std::uint32_t member : group) ++by_node[member / scenario.cluster.gpus_per_node];
    for (const auto& [node, count] : by_node) {
      if (count != on_node)
        refuse_here("with " + std::to_string(on_node) + " members of a data-parallel group on one node and " +
                    std::to_string(count) + " on another, expected the same number on each");
    }
  }
}

void check_compression(const Scenario& scenario, const YamlNode& document) {
  const TrainingSpec& training = scenario.training;
  if (size_of(training.grad_dtype) % training.grad_compression == 0) return;
  refuse(document, {"training.grad_compression", "training.grad_dtype"},
         "grad_compression " + std::to_string(training.grad_compression) + " of " + std::string(name_of(training.grad_dtype)) +
             " gradients leaves less than a byte of each, expected at most " + std::to_string(size_of(training.grad_dtype)));
}

/// Consecutive ranks, in the order of the axes in which experts are laid out, that lie in one data-parallel replica.
std::int64_t run_of_replica(const ParallelismSpec& p) {
  std::int64_t run = 1;
  for (const Axis axis : p.order) {
    if (axis == Axis::dp) break;
    if (axis == Axis::tp) run *= p.tp;
    if (axis == Axis::cp) run *= p.cp;
  }
  return run;
}

void check_local_steps(const Scenario& scenario, const YamlNode& document) {
  const TrainingSpec& training = scenario.training;
  const ParallelismSpec& p = scenario.parallelism;
  if (!training.local_steps()) return;
  const std::string sync = "sync_every " + std::to_string(training.sync_every);
  if (p.zero > 0)
    refuse(
        document, {"training.sync_every", "parallelism.zero"},
        sync + " with zero " + std::to_string(p.zero) +
            ", which spreads a replica's optimizer states over all replicas, so that none can take a step alone; expected zero "
            "0, or sync_every 1");
  if (training.hierarchical_all_reduce)
    refuse(
        document, {"training.sync_every", "training.hierarchical_all_reduce"},
        sync + " with hierarchical_all_reduce of gradients, which replicas then do not reduce; expected at most one of the two");
  const std::int64_t experts = p.etp * (p.own_expert_axis ? 1 : p.ep);
  const std::int64_t run = run_of_replica(p);
  if (scenario.model.moe.experts > 0 && p.dp > 1 && run % experts != 0)
    refuse(document, {"training.sync_every", "parallelism.ep", "parallelism.etp", "parallelism.order"},
           sync + " with experts spread over " + std::to_string(experts) +
               " ranks of several data-parallel replicas, each of which takes steps alone; expected etp" +
               (p.own_expert_axis ? "" : " * ep") + " to divide " + std::to_string(run) +
               ", the tp * cp inside dp in parallelism.order" + (p.own_expert_axis ? "" : ", or expert_axis own"));
}

}  // namespace

void validate_data_parallel(const Scenario& scenario, const YamlNode& document) {
  check_hsdp(scenario, document);
  check_hierarchy(scenario, document);
  check_compression(scenario, document);
  check_local_steps(scenario, document);
}

}  // namespace tandem::scenarios
