#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// One send or receive that waits for its peer: NCCL's sends and receives on one communicator and stream, as torch.distributed
/// has them without groups of their own. The transfers of one `Batch` are posted together (ncclGroupStart to ncclGroupEnd,
/// batch_isend_irecv), and the rank goes on when all of them are done.
struct Transfer {
  std::uint32_t peer = 0;  ///< a rank
  std::uint32_t id = 0;    ///< the same on both sides
  std::string name;        ///< for a person: "send forward of micro-batch 3"
};
using Batch = std::vector<Transfer>;

/// The batches of each rank, in order.
using RankTransfers = std::vector<std::vector<Batch>>;

/// Returns the pipeline's sends and receives of an unfolded DAG, in each rank's order of lowering. With `batched`, transfers with
/// no computation between them are one batch, as Megatron-LM posts send_forward with recv_backward; else each is a batch of its
/// own.
RankTransfers pipeline_transfers(const Dag& dag, bool batched);

/// Plays the transfers until all are done or none can go on. Returns a circle of ranks that wait for each other, one sentence for
/// each rank and the lowest rank first; empty where all transfers are done.
std::vector<std::string> circle_of(const RankTransfers& ranks);

/// Returns a small scenario with the same order of transfers: the same schedule, stages, chunks and overlap, at most two rounds
/// of micro-batches, one layer per chunk and one rank per stage.
Scenario pipeline_in_small(const Scenario& scenario);

}  // namespace tandem::studies
