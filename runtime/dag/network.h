#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace tandem {

using LinkId = std::uint32_t;

enum class Tier : std::uint8_t {
  nvlink,
  pcie,
  nic,
  leaf,   ///< from leaf switches up
  spine,  ///< from spines up
};
inline constexpr std::size_t tier_count = 5;
constexpr const char* name_of(Tier tier) {
  constexpr const char* names[tier_count] = {"nvlink", "pcie", "nic", "leaf", "spine"};
  return names[static_cast<int>(tier)];
}

/// One direction of a link, or in a folded network one representative of a class of equal links.
struct Link {
  std::string name = {};
  Tier tier = Tier::nvlink;
  BytesPerSecond capacity = 0;  ///< achievable: protocol overhead is already taken off
  std::int64_t count = 1;       ///< how many links this one stands for
};

/// A flow of rate x uses `multiplicity * x` of the link's capacity.
struct Crossing {
  LinkId link = 0;
  std::uint32_t multiplicity = 1;
  bool operator==(const Crossing&) const = default;
};

/// One member's messages to another on one channel. Their bytes are split into `parts` equal ones, each of which crosses a link
/// as often as `crossings` says.
struct Hop {
  std::uint32_t from = 0, to = 0;  ///< places among the members
  std::uint32_t channel = 0;       ///< of the ring, or which tree
  bool between_nodes = false;
  bool down = false;  ///< of a tree: away from the root
  std::uint32_t parts = 1;
  std::vector<Crossing> crossings = {};
};

/// NCCL's ways of running a collective.
enum class Algorithm : std::uint8_t {
  ring,
  tree,       ///< double binary trees over the nodes, chains inside them
  nvls,       ///< the NVSwitches add up and multiply
  nvls_tree,  ///< they do so inside each node, double binary trees over the nodes
  direct,     ///< every message on its own way: sends and all-to-all
  deepep,     ///< none of NCCL's: DeepEP's all-to-all, once to a node and from there to its GPUs
  hybridep,   ///< the same by the kernels of DeepEP's branch hybrid-ep
};
inline constexpr std::size_t algorithm_count = 7;
constexpr const char* name_of(Algorithm algorithm) {
  constexpr const char* names[algorithm_count] = {"ring", "tree", "nvls", "nvls-tree", "direct", "deepep", "hybridep"};
  return names[static_cast<int>(algorithm)];
}
constexpr bool sends_tokens_once(Algorithm algorithm) {
  return algorithm == Algorithm::deepep || algorithm == Algorithm::hybridep;
}
constexpr bool is_of_trees(Algorithm algorithm) { return algorithm == Algorithm::tree || algorithm == Algorithm::nvls_tree; }

/// A collective is one fluid flow: each of `channels` carries the same rate x, and the crossings say how often each link is
/// crossed by all of them together.
///   ring     a channel is a ring over all members; each hop carries the collective's bus bytes
///   tree     once up and once down each edge of its tree, an equal part of the vector
///   nvls     1/n of the vector
///   nvls_tree    as a tree
///   direct   one message, or an equal part of all messages of a member
///   deepep, hybridep    an equal part of them
struct Paths {
  Algorithm algorithm = Algorithm::ring;
  std::uint32_t channels = 1;
  std::vector<Crossing> crossings = {};
  /// The bandwidth that one channel reaches when it has the GPUs' NVLinks, PCIe ports and NICs, the part of the network that NCCL
  /// knows, to itself; 0 means not limited. Direct messages, which NCCL's tuning does not know, have none.
  BytesPerSecond bandwidth = 0;
  /// For a ring on an idle network, with all its hops in use at once: the bandwidth of hops inside nodes, the (harmonic) mean
  /// over hops between nodes, and that of the slowest hop, which direct messages have, too; 0 means not limited. For nvls_tree
  /// deepep and hybridep: the bandwidth that the NVLinks and the NICs let through.
  BytesPerSecond in_node = 0, between_nodes = 0, slowest = 0;
  std::vector<Hop> hops = {};  ///< the same message by message, where it was asked for; none for nvls
};

/// Says how a communicator lies on the network.
struct Layout {
  std::uint32_t nodes = 1;    ///< number of nodes the members lie in
  Seconds intra_latency = 0;  ///< one hop inside the node
  Seconds inter_latency = 0;  ///< one hop between nodes, the longest
  /// One entry per algorithm that the communicator can choose from. The first serves those collectives that have no choice.
  std::vector<Paths> paths = {Paths{}};

  const Paths* find(Algorithm algorithm) const {
    const auto found = std::ranges::find(paths, algorithm, &Paths::algorithm);
    return found == paths.end() ? nullptr : &*found;
  }
};

}  // namespace tandem
