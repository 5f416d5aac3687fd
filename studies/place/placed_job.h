#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/reading/cluster_hosts.h"
#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"
#include "studies/runner/step_job.h"

namespace tandem::studies {

/// The node of each block of ranks. A block fills a node: block b has the ranks from b * gpus_per_node on, in their order on the
/// node's GPUs; the last may leave GPUs free.
using NodeOfBlock = std::vector<std::uint32_t>;

/// A scenario whose ranks are to be placed on nodes that are free.
///
/// `parallelism.dp` may leave nodes of the cluster to others; without it the ranks are as many as the cluster's GPUs. A
/// placement that the scenario lists says which nodes are free where nothing else does, and is ignored otherwise.
class PlacedJob {
 public:
  /// `nodes` as for `read_free_nodes`; empty for none said. Throws InputError, also where too few nodes are free.
  PlacedJob(const std::string& file, const std::vector<std::string>& overrides, const std::string& nodes);

  std::int64_t ranks() const { return ranks_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t hosts_per_node() const { return hosts_.per_node; }
  std::int64_t nodes() const { return nodes_; }                         ///< of the cluster
  const std::vector<std::uint32_t>& free() const { return free_; }      ///< in the order given
  const Scenario& packed_scenario() const { return packed_scenario_; }  ///< on the first nodes that are free
  NodeOfBlock packed() const { return {free_.begin(), free_.begin() + blocks_}; }

  std::vector<std::uint32_t> gpus(const NodeOfBlock& nodes) const;        ///< by rank
  const std::vector<std::string>& warnings() const { return warnings_; }  ///< of the nodes that were said to be free

  /// A host of the job, and how many ranks it has.
  struct HostSlots {
    std::string host;
    std::int64_t slots = 0;
  };
  /// Returns the hosts in the order of their ranks; none where the cluster does not name all its hosts.
  std::vector<HostSlots> hosts(const NodeOfBlock& nodes) const;
  Scenario scenario(const NodeOfBlock& nodes) const;
  /// Returns the scenario with presets filled in, as one line of YAML.
  std::string text(const NodeOfBlock& nodes) const;
  StepJob step_job(const NodeOfBlock& nodes) const;

 private:
  std::string name_;
  YamlNode document_;
  std::int64_t per_node_ = 1, ranks_ = 0, blocks_ = 0, nodes_ = 0;
  ClusterHosts hosts_;
  std::vector<std::uint32_t> free_;
  std::vector<std::string> warnings_;
  Scenario packed_scenario_;

  YamlNode placed(const NodeOfBlock& nodes) const;
  void count(const Place& place);
  void find_free(const std::string& nodes, const std::vector<std::uint32_t>& listed);
};

}  // namespace tandem::studies
