#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// One call of ncclCommSplit by every rank of the world: communicators that share no rank, each with a colour of its own, its
/// place in the list. A rank that is in none of them takes part without colour.
struct SplitRound {
  std::vector<CommunicatorId> communicators;
};

/// All communicators of the DAG, each in exactly one round, in an order that is the same on every rank. A round holds those of
/// one name, axis and size: the tensor-parallel groups of all nodes are one call.
///
/// Pairs are communicators like the others. NCCL runs what is put on one communicator in the order of the calls, on whichever
/// streams: were the sends and receives of a rank on one copy of the world, a receive that waits for the stage before would hold
/// up the send of what is ready, and two ranks that call in different orders would wait for each other for ever. With a
/// communicator for each pair and direction, two streams never share one, and what is simulated as independent is. Neighbours of
/// a pipeline take two rounds, a ring of odd length three.
std::vector<SplitRound> split_rounds(const Dag& dag);

/// The arguments that one rank passes to ncclCommSplit. `key` is the rank's place among the members, so that NCCL's ranks are in
/// the members' order.
struct SplitPlace {
  CommunicatorId communicator = no_id;  ///< none
  int colour = -1;                      ///< NCCL_SPLIT_NOCOLOR
  int key = 0;
};
SplitPlace place_in(const Dag& dag, const SplitRound& round, std::uint32_t world_rank);

}  // namespace tandem
