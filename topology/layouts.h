#pragma once

#include <cstdint>
#include <span>

#include "topology/cluster.h"

namespace tandem::topology {

/// The algorithms that a group of ranks can choose from, beside the ring.
struct GroupAlgorithms {
  bool tree = false;  ///< over several nodes
  bool nvls = false;  ///< in one node, or with trees over several, where their NVSwitches can
};

/// Says whether a layout holds only what all messages add up to, or also every hop of them (`Paths::hops`, whose crossings add up
/// to the same). NVLS, where the switches multiply what they are sent, has no hops.
enum class Detail : std::uint8_t {
  sums,
  hops
};

/// A group of GPUs as NCCL lays it; nodes in the order in which they first appear.
///
/// Ring. Inside one node: one channel through the NVSwitches. Over k nodes with L members each: L channels, each entering and
/// leaving every node on its own rail, so that each NIC carries 1/L of the data and each NVLink port (L-1)/L. With unequal
/// numbers per node: one channel.
///
/// Tree (see tree.h). Per rail two channels, one for each tree: a chain through the node's members to the one on the rail, then
/// the tree over the nodes.
///
/// NVLS. Each of n GPUs owns 1/n of the vector: the switch reads that part of all (n units leave every GPU in all), gives the
/// owner the sum (1 arrives), takes it back (1 leaves) and writes it to all (n arrive): n + 1 units of 1/n per direction. Over
/// several nodes of L > 2 members each does so, and the owners of a part, one in each node, reduce and gather it along the two
/// trees over their rail, half along each, in between (NVLSTree).
Layout lay_group(const Cluster& cluster, std::span<const std::uint32_t> members, GroupAlgorithms algorithms = {},
                 Detail detail = Detail::sums);

/// Lays a group whose messages are too small to take bandwidth from anybody: a ring and, over nodes, trees of latencies alone,
/// without links.
Layout lay_latency(const Cluster& cluster, std::span<const std::uint32_t> members);

/// Lays a send from one GPU to another.
Layout lay_pair(const Cluster& cluster, std::uint32_t source, std::uint32_t destination, Detail detail = Detail::sums);

/// Lays copies of one GPU to the memory of its host (`out`), or back.
Layout lay_host_copy(const Cluster& cluster, std::uint32_t gpu, bool out);

/// Lays an all-to-all: the messages of all pairs at once, where a channel carries what one pair exchanges. Between nodes a
/// message first goes over NVLink to the GPU on the receiver's rail (NCCL's PXN), so that it need not leave the rail.
Layout lay_exchange(const Cluster& cluster, std::span<const std::uint32_t> members, Detail detail = Detail::sums);

/// Counts where a token's rows go, on average over tokens: all its rows, and the different nodes and ranks of its experts, the
/// sender's own included.
struct TokenCopies {
  double choices = 1, nodes = 1, ranks = 1;
};

/// DeepEP's dispatch, and backwards its combine (deepseek-ai/DeepEP, README): a token crosses to each node once, over the rail of
/// its rank to the GPU of the same place there, which passes it on over NVLink once to each GPU that holds one of its experts.
/// With L members in each of N nodes, of B bytes of rows in a member's buffer
///   a NIC carries            B nodes / choices (N - 1) / N
///   an NVLink port           B ranks / choices (L - 1) / L
/// Links are crossed whole times: by the smallest numbers that come within 1 % of these, or the nearest. Where the nodes hold
/// unequal numbers of members, all rows travel by themselves, as in `lay_exchange`. It has no hops.
Layout lay_token_dispatch(const Cluster& cluster, std::span<const std::uint32_t> members, const TokenCopies& copies,
                          Algorithm kernels = Algorithm::deepep);

/// The same for expert dispatch in which each token goes to `choices` members that lie in `nodes` < `choices` nodes: it crosses
/// to a node once, to the GPU there of the sender's place, which passes it on inside. With L members in each of N nodes and s
/// bytes per pair, a GPU's NIC carries (N - 1) L s nodes/choices and its NVLink port N (L - 1) s, for what comes from outside
/// is passed on unless it has arrived already (1 in L).
Layout lay_dispatch(const Cluster& cluster, std::span<const std::uint32_t> members, std::uint32_t choices, std::uint32_t nodes,
                    Detail detail = Detail::sums);

}  // namespace tandem::topology
