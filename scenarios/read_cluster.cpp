#include "scenarios/nccl_topology.h"
#include "scenarios/reader.h"
#include "scenarios/sections.h"

namespace tandem {
namespace {

FabricSpec read_fabric(const YamlNode& node) {
  const Reader fabric(node, "cluster.fabric",
                      {"kind", "tiers", "rail_optimized", "leaf_ports", "pod_leaves", "oversubscription"});
  FabricSpec spec;
  using Kind = FabricSpec::Kind;
  spec.kind = fabric.choice<Kind>("kind", {{"fat-tree", Kind::fat_tree}, {"rail-only", {}}, {"dragonfly", {}}, {"torus", {}}},
                                  Kind::fat_tree);
  spec.tiers = static_cast<int>(fabric.integer("tiers", {2, 3}, 3));
  spec.rail_optimized = fabric.boolean("rail_optimized", true);
  spec.leaf_ports = fabric.integer("leaf_ports", {1, 65'536}, spec.leaf_ports);
  spec.pod_leaves = fabric.integer("pod_leaves", {1, 65'536}, spec.pod_leaves);
  const std::size_t tiers = static_cast<std::size_t>(spec.tiers);
  spec.oversubscription = fabric.numbers("oversubscription", {1e-3, 1e3}, std::vector<double>(tiers, 1.0));
  if (spec.oversubscription.size() != tiers)
    fabric.fail("oversubscription", "oversubscription lists " + std::to_string(spec.oversubscription.size()) +
                                        " tiers, expected tiers " + std::to_string(tiers) + ": NIC to leaf, leaf to spine" +
                                        (tiers == 3 ? ", spine to core" : ""));
  return spec;
}

}  // namespace

ClusterSpec read_cluster(const YamlNode& node) {
  const Reader cluster(node, "cluster",
                       {"name", "gpus", "gpu", "gpus_per_node", "nvlink_GBps", "nics_per_node", "nic_gbps", "nvlink_efficiency",
                        "nic_efficiency", "nvlink_latency_us", "nic_latency_us", "switch_latency_us", "fabric", "nccl_topology"});
  const Range<double> bandwidth{1e-3, 1e6}, share{1e-3, 1}, latency_us{0, 1e6};
  ClusterSpec spec;
  spec.name = cluster.text("name", "inline");
  spec.gpus = cluster.integer("gpus", {1, max_gpus}, 0);
  if (!cluster.has("gpu")) cluster.fail("gpu", "cluster.gpu is missing, expected a GPU preset such as h100-sxm-80gb");
  spec.gpu = read_gpu(cluster.child("gpu"));
  spec.gpus_per_node = cluster.integer("gpus_per_node", {1, 65'536});
  spec.nvlink_GBps = cluster.number("nvlink_GBps", bandwidth);
  spec.nics_per_node = cluster.integer("nics_per_node", {0, 65'536});
  spec.nic_gbps = spec.nics_per_node == 0 ? cluster.number("nic_gbps", {0, 1e6}, 0) : cluster.number("nic_gbps", bandwidth);
  spec.nvlink_efficiency = cluster.number("nvlink_efficiency", share, 1);
  spec.nic_efficiency = cluster.number("nic_efficiency", share, 1);
  spec.nvlink_latency_us = cluster.number("nvlink_latency_us", latency_us);
  spec.nic_latency_us = cluster.number("nic_latency_us", latency_us, spec.nics_per_node == 0 ? std::optional(0.0) : std::nullopt);
  spec.switch_latency_us = cluster.number("switch_latency_us", latency_us, 0);
  spec.fabric = read_fabric(cluster.child("fabric"));
  if (cluster.has("nccl_topology")) spec.pcie = read_imported_pcie(cluster, spec.gpus_per_node, spec.nics_per_node);
  return spec;
}

}  // namespace tandem
