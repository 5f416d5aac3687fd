#pragma once

#include "scenarios/lowering/attend.h"
#include "scenarios/mesh/attended_keys.h"

namespace tandem::scenarios {

/// The outputs over the keys of a block, or over several blocks, and the logs of the softmaxes' denominators.
struct BlockOutput {
  BufferId out = no_id, lse = no_id;
};

/// Lowers attention to one block, as one kernel.
BlockOutput attend_block(Context& context, const Heads& heads, const Block& block);
/// Lowers the backward of one block. `output` is that over all blocks, which makes a block's share of the gradients exact.
Heads attend_block_backward(Context& context, const Heads& heads, const Block& block, const BlockOutput& output, BufferId dout);
/// Returns the kind of the layer that is being lowered.
Mixer mixer_of_layer(const Context& context);
/// Returns whether in a layer of this kind a query of the block sees any of its keys where they are of one document. Blocks that
/// have no document in common are attended to all the same: nobody knows before the batch is there.
bool sees_any(const Context& context, Mixer mixer, const Block& block);
/// Adds the sink, if there is one, to what attending to all keys gave.
void add_sink(Context& context, const std::optional<AttentionSink>& sink, const BlockOutput& output);
/// Lowers the gradient of its scores, from that of the output with them.
void add_sink_backward(Context& context, const std::optional<AttentionSink>& sink, const BlockOutput& output, BufferId dout);
void merge_outputs(Context& context, const BlockOutput& part, const BlockOutput& into);

/// Lowers attention where every key of the sequence is on this rank: as one kernel, or with `training.attention: unfused` as one
/// for each step, which keeps the scores' softmax for the backward.
Attended whole_attention(Context& context, const Heads& heads);

}  // namespace tandem::scenarios
