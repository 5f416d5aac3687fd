#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster.h"

namespace tandem::studies {

/// Where nodes hang in the fabric, by node. Nodes of one leaf have all their NICs on the same leaf switches, those of one pod
/// have leaves below the same spines.
struct NodeSites {
  std::vector<std::uint32_t> leaf, pod;  ///< numbered by first appearance
  bool alike = false;                    ///< nodes of one leaf cannot be told apart: no fault, and no hash of flows

  explicit NodeSites(const Cluster& cluster);

  /// Returns whether it makes no difference which of the two nodes a block is on.
  bool same(std::uint32_t a, std::uint32_t b) const { return a == b || (alike && leaf[a] == leaf[b]); }
};

}  // namespace tandem::studies
