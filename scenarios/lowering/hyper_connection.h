#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

// Hyper-connections (runtime/ops/hyper_connection.h; HyperConnectionModule of Megatron-Core, megatron/core/transformer/
// hyper_connection.py; mHC of DeepSeek-V4): between the halves of layers there are several residual streams side by side,
// [s, b, streams * hidden], which also go from stage to stage. Every half reads one row that it gathers of them, and what it
// makes goes back to all:
//
//   logits = x W^T -> gates -> y = read x -> z = half(y) -> x' = write z + mix x
//
// Streams begin as copies of the embedding, and a last gathering, whose gates read alone, ends them before the final norm. Each
// rank does that with the rows that it has between the parts that tensor parallelism shards.

struct HyperConnectionParameters {
  ParameterId map = 0;   ///< from all streams to the gates' logits
  ParameterId base = 0;  ///< factors and biases of the gates
};

/// `mixes`: of a half; else of the end of the streams.
HyperConnectionParameters declare_hyper_connection(const Context& context, ChunkParameters& parameters, const std::string& tensor,
                                                   bool mixes);

/// From the streams before a half to those after it.
BufferId hyper_connection(Context& context, Tape& tape, const HyperConnectionParameters& weights, BufferId x, const Module& half);

BufferId begin_streams(Context& context, Tape& tape, BufferId x);
BufferId end_streams(Context& context, Tape& tape, const HyperConnectionParameters& weights, BufferId x);

/// Width of what goes from layer to layer.
inline std::int64_t residual_width(const Context& context) { return context.sizes.hidden * context.scenario.model.hyper.streams; }

}  // namespace tandem::scenarios
