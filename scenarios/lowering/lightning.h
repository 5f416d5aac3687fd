#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

struct LightningParameters {
  ParameterId in = 0;    ///< to q | k | v
  ParameterId gate = 0;  ///< of the output
  ParameterId norm = 0;  ///< of all heads together
  ParameterId out = 0;
};

/// Lightning attention (Qin et al. 2024, arXiv 2401.04658; `MiniMaxLightningAttention` of transformers): a projection, column
/// parallel, through SiLU; linear attention whose past fades, head by head; a norm of all heads of a token together, times the
/// sigmoid of another projection; the projection back, row parallel. Heads are sharded over tp, whose ranks all-reduce the
/// norm's sum of squares of each token, and its counterpart backward (as `MiniMaxText01RMSNormTP` of vLLM does forward).
///
/// With context parallelism an all-to-all for each of q, k and v gives every rank the whole sequence of some heads, and one
/// brings the outputs back. MiniMax passes states between ranks instead (LASP+, arXiv 2501.08313, section 3.2).
LightningParameters declare_lightning(const Context& context, ChunkParameters& parameters, const std::string& layer);

BufferId lightning(Context& context, Tape& tape, const LightningParameters& weights, BufferId x);

}  // namespace tandem::scenarios
