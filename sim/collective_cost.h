#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "runtime/dag/dag.h"
#include "sim/nccl_constants.h"
#include "sim/speedup.h"

namespace tandem::sim {

/// The part of each member's device that a collective takes while it runs: see nccl_channels.h.
struct Occupation {
  std::int32_t multiprocessors = 0;
  BytesPerSecond memory = 0;
  bool operator==(const Occupation&) const = default;
};

/// A collective as one fluid flow: after `latency`, `bytes_per_channel` run over each channel of one of the layout's paths.
struct CollectiveCost {
  Seconds latency = 0;
  Bytes bytes_per_channel = 0;  ///< on the wire, the protocol's flags included
  std::uint32_t paths = 0;      ///< index into `Layout::paths`
  Protocol protocol = Protocol::simple;
  BytesPerSecond rate_limit = 0;  ///< of a channel, on the wire, where not only the links limit it; 0: they alone do
  bool limit_is_share = false;    ///< of what the links carry (`Paths::bandwidth`), and not a limit of NCCL's own

  /// The ratio of the measured to the modelled time, where the collective was measured. Latencies and `bytes_per_channel` contain
  /// it as a factor, the bytes that are really sent do not.
  double stretch = 1;

  Occupation occupation = {};  ///< known to `CollectiveCosts` alone

  // What the latency is made of, for those who play the steps one by one.
  Seconds start = 0;                             ///< before the first byte moves
  Seconds intra_latency = 0, inter_latency = 0;  ///< of a hop
};

/// A collective of `bytes` (as in `Group`) over `members` ranks. A rank sends on the bus, with n members
///   all-reduce      2 (n-1)/n bytes   all-gather, reduce-scatter, all-to-all, gather, scatter   (n-1)/n bytes
///   broadcast, reduce, send, copy   bytes   barrier   nothing
///
/// DeepEP and HybridEP send less than that in an all-to-all, see `lay_token_dispatch`. An all-to-all of 0 bytes is one whose data
/// another one carries (gates, in their kernels beside their rows): it takes no time. An all-gather over direct messages is a
/// kernel of HybridEP's that writes to all others.
///
/// The latency of rings is that of ring_latency.h.
///
/// On GPUs of a known architecture, all-reduce, all-gather and reduce-scatter run as NCCL would choose (see nccl_choice.h). On
/// others, and for the rest, the ring of the Simple protocol (for all-reduce with a tree's latency where that is less).
CollectiveCost collective_cost(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout,
                               Architecture architecture = Architecture::unknown);

/// Returns the cost among GPUs of this model. Where such a collective was measured (`Device::collectives`,
/// measured_collectives.h) it keeps its way over the links, and is stretched so that alone on them it takes as long as that;
/// beside others it then takes so much more of the links, or less. DeepEP's and HybridEP's are none of those that are measured.
CollectiveCost collective_cost(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const Device& device);

/// Returns what a collective costs that is `times` as fast: its latencies and bytes, divided.
CollectiveCost at_pace(CollectiveCost cost, double times);

/// Returns how many tensors a collective's list has, that are copied one by one (`Software::tensor_lists`); 0: it has none.
std::size_t tensors_in_list(const Dag& dag, const Task& task);

/// The costs of a DAG's collectives with a speedup, each worked out once for all that are alike. Among GPUs of different models
/// nothing was measured, and none of the copies of overlapped tensor parallelism, which are not NCCL's.
class CollectiveCosts {
 public:
  explicit CollectiveCosts(const Dag& dag, const Speedup& speedup = {})
      : dag_(&dag), speedup_(speedup), recent_(dag.communicators.size()) {}
  const CollectiveCost& of(const Task& task);
  /// Returns how many times as fast a task's collective is as its links and NCCL let expect.
  double pace_of(const Task& task) const;

 private:
  const Dag* dag_;
  Speedup speedup_;
  struct Alike {
    CommunicatorId communicator;
    OpKind op;
    std::uint32_t device;
    Bytes bytes;
    bool operator==(const Alike&) const = default;
  };
  struct HashOfAlike {
    std::size_t operator()(const Alike& alike) const;
  };
  std::unordered_map<Alike, CollectiveCost, HashOfAlike> known_;
  /// Those of a communicator that were looked for last, the latest first: most have collectives of few sizes.
  struct Recent {
    Alike alike;
    const CollectiveCost* cost = nullptr;
  };
  std::vector<std::array<Recent, 4>> recent_;  ///< by communicator

  const CollectiveCost& found(const Alike& alike, const Task& task);
  CollectiveCost computed(const Task& task) const;
  bool are_alike(const Task& task) const;
};

/// Returns the time on an otherwise idle network: latency + bytes_per_channel / (lowest capacity / multiplicity on the way, rate
/// limit).
Seconds uncontended_time(const CollectiveCost& cost, const Layout& layout, const std::vector<Link>& links);

}  // namespace tandem::sim
