#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// Lists the world ranks of each machine. Machines and their ranks stand in the order of the world.
using MachineRanks = std::vector<std::vector<std::uint32_t>>;

/// Groups ranks by machine. `machine_of_rank` holds, for each world rank, a text that tells its machine from all others.
MachineRanks ranks_by_machine(std::span<const std::string> machine_of_rank);

/// A ladder has the sizes `smallest`, `factor` times that, and so on, up to `largest`.
struct LadderSizes {
  Bytes smallest = 0, largest = 0;
  Bytes factor = 4;
};

/// What is worth measuring among these ranks, without timings: all-reduce, all-gather, reduce-scatter and all-to-all of each size
/// among p ranks on each of k machines, for p and k of 1, 2, 4, ... and as many as there are (of a machine the fewest that any
/// has); and, for two ranks, the send from one to the other. Communicators of a training step lie like this: so many ranks of a
/// node, of one node or of many. A size is rounded down to 16 bytes for each member, as NCCL likes its parts; where nothing is
/// left of it, it is left out.
std::vector<MeasuredCollective> collectives_worth_measuring(const MachineRanks& machines, const LadderSizes& sizes);

/// Collectives to be timed, as a DAG for any backend that has its ranks: a row of each, in the order asked for. A collective of m
/// members on k machines is among the first m / k ranks of each of the first k machines, and all other ranks have nothing in it.
///
/// All are on one stream, on views of two buffers of a rank, which are as large as the largest needs. The first two of a row are
/// not timed: members come to it from different places. In a row of transfers a barrier stands before each, as a sender would
/// else run ahead of its receiver.
struct CollectiveLadder {
  Dag dag;
  std::vector<std::vector<GroupId>> timed;  ///< by collective asked for
};

/// Returns how many collectives of a row are timed: 20 small ones, fewer of sizes that take long.
std::size_t timed_in_a_row(Bytes bytes);

/// Builds the ladder from elements of `type`. Each member's part of `bytes` must be a whole number of elements. Throws
/// std::logic_error where it is not, or where the machines lack the members that a collective asks for.
CollectiveLadder make_collective_ladder(std::span<const MeasuredCollective> collectives, const MachineRanks& machines,
                                        DType type);

/// What a run of the ladder says of each collective, by the order asked for. Every rank's times may be of a clock of its own: no
/// member of a collective can end before all have begun, so that the one that came last, which waited for nobody, took least; its
/// time is the collective's. A transfer's time is the receiver's, as a sender may end before its bytes have arrived.
std::vector<std::vector<Seconds>> samples_of(const CollectiveLadder& ladder, const Timeline& timeline);

}  // namespace tandem
