#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <ostream>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "sim/chunk_steps.h"
#include "sim/simulate.h"
#include "topology/layouts.h"

namespace tandem::sim {

inline constexpr Bytes KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30;
inline constexpr double three_percent = 0.03;
inline constexpr double rounding = 1e-6;  // chunks are whole bytes, and events a picosecond apart are one

/// H100 nodes in numbers; leaves and pods small enough that 64 GPUs cross the core.
inline ClusterSpec cluster_of(std::int64_t gpus, std::int64_t per_node, bool rails = true, double oversubscribed = 1) {
  ClusterSpec spec;
  spec.gpus = gpus;
  spec.gpus_per_node = spec.nics_per_node = per_node;
  spec.nvlink_GBps = 450;
  spec.nic_gbps = 400;
  spec.nvlink_latency_us = 3.4;
  spec.nic_latency_us = 13.87;
  spec.switch_latency_us = 0.13;
  spec.fabric = {.rail_optimized = rails, .leaf_ports = 2, .pod_leaves = per_node};
  spec.fabric.oversubscription = {1, oversubscribed, oversubscribed};
  return spec;
}

inline std::vector<std::uint32_t> all(std::int64_t gpus) {
  std::vector<std::uint32_t> list(static_cast<std::size_t>(gpus));
  std::iota(list.begin(), list.end(), 0U);
  return list;
}

/// Collectives that start at 0 on the links of a cluster, each seen from one member.
class Collective {
 public:
  explicit Collective(const Cluster& cluster, Architecture architecture = Architecture::unknown)
      : Collective(cluster.links(), architecture) {}
  explicit Collective(std::vector<Link> links, Architecture architecture = Architecture::unknown) {
    builder_.dag().links = std::move(links);
    builder_.dag().devices.emplace_back().architecture = architecture;
  }

  void add(OpKind op, std::size_t members, Bytes bytes, const Layout& layout) {
    const auto n = static_cast<Bytes>(members);
    Communicator communicator{.name = "all", .axis = Axis::dp, .members = all(n), .layout = layout};
    const CommunicatorId id = builder_.add_communicator(std::move(communicator));
    const RankIndex rank = builder_.add_rank({.world_rank = static_cast<std::uint32_t>(builder_.dag().ranks.size())});
    const auto buffer = [&](Bytes size) { return builder_.buffer(rank, BufferKind::communication, DType::f8, Shape(size)); };
    const BufferId in = buffer(op == OpKind::all_gather ? bytes / n : bytes);
    BufferId out = in;
    if (op != OpKind::all_reduce) out = op == OpKind::send ? no_id : buffer(op == OpKind::reduce_scatter ? bytes / n : bytes);
    builder_.collective(op, id, {.name = "collective", .stream = Stream::dp}, in, out);
  }

  Dag finish() { return builder_.finish(); }

 private:
  DagBuilder builder_;
};

inline Layout lay_out(OpKind op, const Cluster& cluster, Detail detail = Detail::hops) {
  const std::vector<std::uint32_t> members = all(cluster.gpus());
  if (op == OpKind::send) return lay_pair(cluster, 0, members.back(), detail);
  if (op == OpKind::all_to_all) return lay_exchange(cluster, members, detail);
  return lay_group(cluster, members, {}, detail);
}

/// Bytes over each link, all messages together.
inline std::map<LinkId, Bytes> carried_in_steps(const ChunkSteps& steps) {
  std::map<LinkId, Bytes> carried;
  for (const Hop& hop : steps.hops) {
    for (std::uint32_t i = 0; i < steps.messages; ++i) {
      for (const Crossing& crossing : hop.crossings)
        carried[crossing.link] += steps.bytes_of(i) / hop.parts * crossing.multiplicity;
    }
  }
  return carried;
}

struct Times {
  Seconds fluid = 0, steps = 0;
  double ratio() const { return steps / fluid; }
};

inline Times times_of(const Dag& dag) {
  return {simulate(dag, Collectives::fluid).timeline.makespan(), simulate(dag, Collectives::steps).timeline.makespan()};
}

struct Setting {
  std::int64_t gpus, per_node;
  bool rails;
  double oversubscribed;
};
inline void PrintTo(const Setting& s, std::ostream* out) {
  *out << s.gpus << " GPUs, " << s.per_node << " per node, " << (s.rails ? "rails" : "no rails") << ", 1:" << s.oversubscribed;
}

}  // namespace tandem::sim
