#pragma once

#include <vector>

#include "studies/place/node_sites.h"
#include "studies/place/placed_job.h"
#include "studies/place/step_traffic.h"

namespace tandem::studies {

// Where a search begins. `free`: the nodes to choose from, at least as many as blocks.

/// Puts block after block on the free nodes in the order of pods, leaves and nodes.
NodeOfBlock sorted_by_leaf(const std::vector<std::uint32_t>& free, std::size_t blocks, const NodeSites& sites);

/// Puts blocks that exchange most into one pod, and there on one leaf. Splits part after part of the blocks off the rest, each as
/// large as the pod (then leaf) that has most free nodes, or that is just large enough for all that are left. A part grows from
/// its lowest block by whichever block exchanges most with it; then blocks of the part and of the rest change places as long as
/// that leaves less between the two (Kernighan and Lin, "An Efficient Heuristic Procedure for Partitioning Graphs", 1970, with
/// single swaps). Blocks that follow each other in a ring or tree, or that are a pair, exchange what it carries; in an all-to-all
/// every two exchange their part of it. `gpus_per_node` ranks are a block.
NodeOfBlock bisected(const std::vector<std::uint32_t>& free, std::size_t blocks, const NodeSites& sites,
                     const StepTraffic& traffic, std::int64_t gpus_per_node);

/// Returns the same placement with the nodes of each leaf in order, its lowest free ones first, where nobody can tell them apart.
NodeOfBlock in_order(NodeOfBlock nodes, const std::vector<std::uint32_t>& free, const NodeSites& sites);

}  // namespace tandem::studies
