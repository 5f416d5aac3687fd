#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// What ranks do one after the other where every send waits until its receive is posted: NCCL's sends and receives on one
/// communicator and stream, as torch.distributed has them without groups of their own. Those of one `Batch` are posted together
/// (ncclGroupStart to ncclGroupEnd, batch_isend_irecv) and the rank goes on when all of them are done.
struct Transfer {
  std::uint32_t peer = 0;  ///< a rank
  std::uint32_t id = 0;    ///< the same on both sides
  std::string name;        ///< for a person: "send forward of micro-batch 3"
};
using Batch = std::vector<Transfer>;

/// By rank: its batches in order.
using RankTransfers = std::vector<std::vector<Batch>>;

/// The pipeline's sends and receives of a DAG that is not folded, in each rank's order of lowering. `batched`: those with no
/// computation between them are one batch, as Megatron-LM posts send_forward with recv_backward; else each is its own.
RankTransfers pipeline_transfers(const Dag& dag, bool batched);

/// Plays them until all are done or none can go on. A circle of those that then wait for each other: the sentences of its ranks,
/// beginning with the lowest; empty where all are done.
std::vector<std::string> circle_of(const RankTransfers& ranks);

/// A small scenario with the same pipeline: schedule, stages, chunks and overlap, at most two rounds of micro-batches, one layer
/// per chunk and one rank per stage. Its order of transfers is the scenario's.
Scenario pipeline_in_small(const Scenario& scenario);

}  // namespace tandem::studies
