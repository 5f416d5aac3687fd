#pragma once

#include "sim/collective_cost.h"

namespace tandem::sim {

/// What an algorithm's paths say of the collectives that run over them, beside their cost.
struct AlgorithmTraits {
  Algorithm algorithm = Algorithm::ring;
  bool in_switches = false;   ///< the NVSwitches add up and multiply: NVLS's channels, and fewer passes through memory
  double memory_of_sent = 2;  ///< bytes through a member's memory for each that a path's channels count, all-reduced
  enum class Steps : std::uint8_t {
    at_once,                 ///< messages that wait for no other
    ring,                    ///< each on to the next member
    tree                     ///< in slices, from the leaves to the root and back
  } steps = Steps::at_once;  ///< how `--collectives steps` plays it
};
const AlgorithmTraits& traits_of(Algorithm algorithm);

/// NCCL's tuning (NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel): of the algorithms that the layout has and their
/// protocols, the one whose predicted time latency + bytes / bandwidth is least. With n members in k nodes, steps = 2 (n-1) for
/// an all-reduce, n-1 for all-gather and reduce-scatter, of which 2 (k-1) or k-1 lie between nodes:
///   ring   base + (steps - between) intra + between inter
///   tree   base + 2 ((n/k - 1) intra + log2(k) inter)                       all-reduce
///   nvls   intra                                                            all-reduce in one node
///   nvls-tree   intra + 2 log2(k) inter                                     all-reduce over several
///   pat    base + log2(k) inter / (hops under way) + n (time per rank)      the other two, one GPU per node; on the ring's paths
/// `intra` and `inter` are one hop of the algorithm and protocol: NCCL's constant, and what a hop of this layout takes more than
/// NCCL's constant for the ring and Simple. Bandwidths are shares of the layout's, up to NCCL's limits per channel; those of
/// trees have NCCL's correction for middling sizes. Over nodes, a hop of a ring takes what the host needs to post it at least,
/// and NCCL stretches the latency of large rings in its prediction.
///
/// The cost that is returned is what the choice takes, where more is known than NCCL's prediction: a ring's latency is that of
/// ring_latency.h, and inside a node has the constants that were measured of its architecture; under NVLS no sum leaves a switch
/// before the first pieces have come in, and its bandwidth is the one achieved; over nodes of many GPUs, that of few NICs.
/// bench/accuracy/collectives.csv says how far that
/// is from measured times.
///
/// Left out: switches of the network that add up (CollNet), buffers that are registered (symmetric kernels, NVLS for all-gather
/// and reduce-scatter), PAT for several GPUs per node, which NCCL does only when told to, and its extra time for flushes.
CollectiveCost nccl_choice(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, Architecture architecture);

}  // namespace tandem::sim
