#include "runtime/base/nearest.h"
#include "scenarios/reading/cluster_hosts.h"
#include "scenarios/reading/nccl_topology.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

std::vector<IndexRange> index_ranges(const std::vector<Range<std::int64_t>>& ranges) {
  std::vector<IndexRange> indices;
  for (const auto& range : ranges) indices.push_back({range.min, range.max});
  return indices;
}

std::string expected_gpu() {
  return "expected its fields, a file, or one of the presets: " + joined(preset_names(PresetKind::gpu));
}

PcieSpec read_pcie(const YamlNode& node) {
  const Range<std::int64_t> place{0, 65'535};
  const Reader pcie(node, "cluster.pcie", {"nic_of_gpu", "ports"});
  PcieSpec spec;
  spec.nic_of_gpu = pcie.integers("nic_of_gpu", place);
  for (const YamlNode* item : one_or_several(pcie.child("ports"))) {
    const Reader reader(*item, "cluster.pcie.ports", {"name", "GBps", "gpus"});
    PcieSpec::Port& port = spec.ports.emplace_back();
    port.name = reader.text("name", "pcie" + std::to_string(spec.ports.size() - 1));
    port.GBps = reader.number("GBps", {1e-3, 1e6});
    for (const auto& [first, last] : reader.ranges("gpus", place)) {
      for (std::int64_t gpu = first; gpu <= last; ++gpu) port.gpus.push_back(gpu);
    }
  }
  return spec;
}

HostSpec read_host(const YamlNode& node) {
  const Reader host(node, "cluster.host", {"link_GBps", "link_latency_us", "memory_GBps"});
  const Range<double> bandwidth{1e-3, 1e6};
  HostSpec spec{.link_latency_us = host.number("link_latency_us", microseconds, 0)};
  if (host.has("link_GBps")) spec.link_GBps = host.number("link_GBps", bandwidth);
  if (host.has("memory_GBps")) spec.memory_GBps = host.number("memory_GBps", bandwidth);
  return spec;
}

std::vector<OtherGpus> read_other_gpus(const YamlNode& node) {
  std::vector<OtherGpus> others;
  for (const YamlNode* item : one_or_several(node)) {
    const Reader reader(*item, "cluster.other_gpus", {"nodes", "gpu"});
    if (!reader.has("gpu")) reader.fail("gpu", "cluster.other_gpus.gpu is missing, " + expected_gpu());
    others.push_back({.nodes = index_ranges(reader.ranges("nodes", {0, max_gpus - 1})),
                      .gpu = read_gpu(reader.child("gpu"), "cluster.other_gpus.gpu")});
  }
  return others;
}

}  // namespace

ClusterSpec read_cluster(const YamlNode& node) {
  const Reader cluster(node, "cluster",
                       {"name",
                        "gpus",
                        "gpu",
                        "gpus_per_node",
                        "nvlink_GBps",
                        "nics_per_node",
                        "nic_gbps",
                        "nvlink_efficiency",
                        "nic_efficiency",
                        "nvlink_latency_us",
                        "nic_latency_us",
                        "switch_latency_us",
                        "fabric",
                        "other_gpus",
                        "node_links",
                        "nvswitch_planes",
                        "nvls",
                        "pcie",
                        "host",
                        "hosts",
                        "hosts_per_node",
                        "nccl_topology",
                        "profile"});
  const Range<double> bandwidth{1e-3, 1e6}, share{1e-3, 1}, latency_us{0, 1e6};
  ClusterSpec spec;
  spec.name = cluster.text("name", "inline");
  spec.gpus = cluster.integer("gpus", {1, max_gpus}, 0);
  if (!cluster.has("gpu")) cluster.fail("gpu", "cluster.gpu is missing, " + expected_gpu());
  spec.gpu = read_gpu(cluster.child("gpu"), "cluster.gpu");
  spec.other_gpus = read_other_gpus(cluster.child("other_gpus"));
  spec.gpus_per_node = cluster.integer("gpus_per_node", {1, 65'536});
  spec.nvlink_GBps = cluster.number("nvlink_GBps", bandwidth);
  spec.node_links = cluster.choice<NodeLinks>("node_links", choices(node_links_names), NodeLinks::switched);
  spec.nvswitch_planes = cluster.integer("nvswitch_planes", {1, 1024}, 1);
  spec.nvls = cluster.boolean("nvls", false);
  if (spec.nvls && spec.node_links == NodeLinks::mesh)
    cluster.fail(
        "nvls",
        "cluster.nvls needs switches that reduce, and a mesh has none; set it to false, or cluster.node_links to switched");
  spec.nics_per_node = cluster.integer("nics_per_node", {0, 65'536});
  spec.nic_gbps = spec.nics_per_node == 0 ? cluster.number("nic_gbps", {0, 1e6}, 0) : cluster.number("nic_gbps", bandwidth);
  spec.nvlink_efficiency = cluster.number("nvlink_efficiency", share, 1);
  spec.nic_efficiency = cluster.number("nic_efficiency", share, 1);
  spec.nvlink_latency_us = cluster.number("nvlink_latency_us", latency_us);
  spec.nic_latency_us = cluster.number("nic_latency_us", latency_us, spec.nics_per_node == 0 ? std::optional(0.0) : std::nullopt);
  spec.switch_latency_us = cluster.number("switch_latency_us", latency_us, 0);
  spec.pcie = read_pcie(cluster.child("pcie"));
  spec.host = read_host(cluster.child("host"));
  spec.fabric = read_fabric(cluster.child("fabric"));
  if (const std::int64_t hosts = read_cluster_hosts(node).per_node; spec.gpus_per_node % hosts != 0)
    cluster.fail("hosts_per_node", "hosts_per_node " + std::to_string(hosts) + " does not divide gpus_per_node " +
                                       std::to_string(spec.gpus_per_node) + ", expected hosts with equally many GPUs");
  if (cluster.has("nccl_topology")) spec.pcie = read_imported_pcie(cluster, spec.gpus_per_node, spec.nics_per_node);
  return spec;
}

}  // namespace tandem::scenarios
