#include <spdlog/fmt/fmt.h>

#include "scenarios/interop/export_text.h"

namespace tandem::scenarios {

/// Writes variables that make NCCL do what the scenario assumes, where its own choice could be another: KEY=value lines with the
/// reason above each; none where there is nothing to say. Names and defaults: NVIDIA, "NCCL environment variables".
Exported nccl_environment(const ScenarioWithDocument& read) {
  const Scenario& scenario = read.scenario;
  const ClusterSpec& cluster = scenario.cluster;
  const FabricSpec& fabric = cluster.fabric;
  ExportText out;
  out.comment("what " + scenario.name +
              " assumes and NCCL may choose otherwise; the choice of algorithm, protocol and channels is NCCL's own");
  const auto set = [&](const std::string& assignment, const std::string& reason) {
    out.line("");
    out.comment(reason);
    out.line(assignment);
  };
  const bool switches_reduce =
      cluster.gpu.architecture == Architecture::hopper || cluster.gpu.architecture == Architecture::blackwell;
  if (switches_reduce && !cluster.nvls && cluster.gpus_per_node > 2)
    set("NCCL_NVLS_ENABLE=0",
        "cluster.nvls is false: the NVSwitches do not reduce and multicast, which NCCL would else let them do");
  const bool several_nodes = cluster.gpus > cluster.gpus_per_node && cluster.nics_per_node > 0;
  if (!several_nodes) return out.take();
  if (fabric.kind == FabricSpec::Kind::fat_tree || fabric.kind == FabricSpec::Kind::dragonfly_plus) {
    if (fabric.rail_optimized) {
      set("NCCL_CROSS_NIC=0", "rail-optimized: rings and trees keep to one rail, as NIC i of every node hangs on the same leaf");
    } else {
      set("NCCL_CROSS_NIC=1", "all NICs of a node hang on one leaf, so that a ring may enter and leave it by different ones");
    }
  }
  if (fabric.routing == FlowRouting::ecmp && fabric.flows > 1)
    set(fmt::format("NCCL_IB_QPS_PER_CONNECTION={}", fabric.flows),
        fmt::format("cluster.fabric.flows: {} queue pairs per connection give the switches' hashes as many flows to spread",
                    fabric.flows));
  if (fabric.routing == FlowRouting::adaptive)
    set("NCCL_IB_ADAPTIVE_ROUTING=1",
        "cluster.fabric.routing is adaptive, which NCCL makes use of by itself on InfiniBand only, not on RoCE");
  if (fabric.routing == FlowRouting::ecmp)
    set("NCCL_IB_ADAPTIVE_ROUTING=0", "cluster.fabric.routing is ecmp: each flow keeps to its path");
  return out.take();
}

}  // namespace tandem::scenarios
