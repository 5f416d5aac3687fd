#include "scenarios/lowering/attention_block.h"

#include <cmath>
#include <utility>

#include "runtime/ops/attention_mask.h"
#include "scenarios/lowering/dropout.h"
#include "scenarios/lowering/gemm_operand.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/mesh/positions.h"

namespace tandem::scenarios {
namespace {

AttentionAttributes attributes_of(Context& context, const Heads& heads, const Block& block) {
  AttentionAttributes attributes = seen_keys(context.scenario, mixer_of_layer(context), block);
  attributes.softcap = static_cast<float>(context.scenario.model.attention_softcap);
  attributes.documents = documents(context);
  const double scale = context.scenario.model.attention_scale;
  attributes.scale = scale > 0 ? static_cast<float>(scale) : 1.0F / std::sqrt(static_cast<float>(context.shape_of(heads.q)[3]));
  return attributes;
}

/// Its part of a parameter that has a number for each head.
BufferId part_of(Context& context, const AttentionSink& sink, BufferId all) {
  return context.builder.view(all, sink.first_head, Shape(sink.heads, 1));
}

bool is_unfused(const Context& context) {
  const Device& device = context.world.devices[context.world.ranks[context.rank].device];
  return device.efficiency.attention_kernel == AttentionKernel::unfused;
}

/// What unfused attention keeps of the scores for its backward: the softmax's output, what dropout leaves of it, and its mask.
struct Probabilities {
  BufferId softmax = no_id, dropped = no_id, mask = no_id;
};

Probabilities drop(Context& context, BufferId softmax, const DropoutAttributes& attributes) {
  if (attributes.probability == 0) return {softmax, softmax, no_id};
  const Shape shape = context.shape_of(softmax);
  const Probabilities p{softmax, context.activation(shape), context.activation(shape, DType::u8)};
  context.kernel(OpKind::dropout, attributes, "attention dropout", {softmax, sequence_numbers(context)}, {p.dropped, p.mask});
  return p;
}

BufferId dropout_backward(Context& context, const Probabilities& p, const DropoutAttributes& attributes, BufferId gradient) {
  if (p.mask == no_id) return gradient;
  const BufferId before = context.activation(context.shape_of(gradient));
  context.kernel(OpKind::dropout_backward, attributes, "attention dropout", {gradient, p.mask}, {before});
  return before;
}

/// All queries by all keys at once, a kernel for each step, as Megatron-LM ran it (Narayanan et al. 2021).
Attended unfused_attention(Context& context, const Heads& heads, const Block& block) {
  const Shape q = context.shape_of(heads.q);
  const Shape of_scores(q[1], q[2], q[0], context.shape_of(heads.k)[0]);
  AttentionAttributes attributes = attributes_of(context, heads, block);
  const float scale = std::exchange(attributes.scale, 1.0F);  // the products apply it
  const DropoutAttributes dropout = dropout_of_probabilities(context, q[2]);

  const BufferId scores = context.activation(of_scores), softmax = context.activation(of_scores);
  context.kernel(OpKind::batched_gemm, BatchedGemmAttributes{.transpose_b = true, .factor = scale}, "attention scores",
                 {heads.q, heads.k}, {scores});
  context.kernel(OpKind::softmax, attributes, "attention softmax", {scores}, {softmax});
  const Probabilities p = drop(context, softmax, dropout);
  const BufferId out = context.activation(Shape(q[0], q[1], q[2], context.shape_of(heads.v)[3]));
  context.kernel(OpKind::batched_gemm, BatchedGemmAttributes{}, "attention context", {p.dropped, heads.v}, {out});
  return {out, [=](Context& c, const Heads& h, BufferId dout) {
            const Heads d = make_like(c, h);
            const BatchedGemmAttributes scores_form{.transpose_b = true}, back{.factor = scale};
            const BatchedGemmAttributes to_values{.transpose_a = true}, to_keys{.transpose_a = true, .factor = scale};
            c.kernel(OpKind::batched_gemm, to_values, "attention context", {p.dropped, dout}, {d.v});
            const BufferId ddropped = c.activation(of_scores), dscores = c.activation(of_scores);
            c.kernel(OpKind::batched_gemm, scores_form, "attention context", {dout, h.v}, {ddropped});
            const BufferId dp = dropout_backward(c, p, dropout, ddropped);
            c.kernel(OpKind::softmax_backward, attributes, "attention softmax", {p.softmax, dp}, {dscores});
            c.kernel(OpKind::batched_gemm, back, "attention scores", {dscores, h.k}, {d.q});
            c.kernel(OpKind::batched_gemm, to_keys, "attention scores", {dscores, h.q}, {d.k});
            return d;
          }};
}

}  // namespace

BlockOutput attend_block(Context& context, const Heads& heads, const Block& block) {
  const Shape q = context.shape_of(heads.q);
  const BlockOutput output{context.activation(Shape(q[0], q[1], q[2], context.shape_of(heads.v)[3])),
                           context.activation(Shape(q[1], q[2], q[0]), DType::f32)};
  const auto input = [&](BufferId x) { return attention_operand(context, x, OperandRole::input); };
  context.kernel(OpKind::attention, attributes_of(context, heads, block), "attention",
                 {input(heads.q), input(heads.k), input(heads.v)}, {output.out, output.lse});
  return output;
}

Heads attend_block_backward(Context& context, const Heads& heads, const Block& block, const BlockOutput& output, BufferId dout) {
  const auto input = [&](BufferId x) { return attention_operand(context, x, OperandRole::input); };
  const BufferId q = input(heads.q), k = input(heads.k), v = input(heads.v);
  const BufferId gradient = attention_operand(context, dout, OperandRole::gradient);
  const Heads d = make_like(context, heads);
  context.kernel(OpKind::attention_backward, attributes_of(context, heads, block), "attention",
                 {q, k, v, output.out, output.lse, gradient}, {d.q, d.k, d.v});
  return d;
}

Mixer mixer_of_layer(const Context& context) { return context.scenario.model.layer_kind(context.layer).mixer; }

bool sees_any(const Context& context, Mixer mixer, const Block& block) {
  return seen_pairs(seen_keys(context.scenario, mixer, block), block.queries.count(), block.keys.count()) > 0;
}

// The kernel of attention adds it on its way.
void add_sink(Context& context, const std::optional<AttentionSink>& sink, const BlockOutput& output) {
  if (!sink) return;
  const BufferId scores = part_of(context, *sink, context.parameters().weight(sink->scores));
  context.kernel(OpKind::attention_sink, FusedAttributes{}, "attention sink", {scores}, {}, {output.out, output.lse});
}

void add_sink_backward(Context& context, const std::optional<AttentionSink>& sink, const BlockOutput& output, BufferId dout) {
  if (!sink) return;
  const ChunkParameters& parameters = context.parameters();
  const BufferId scores = part_of(context, *sink, parameters.weight(sink->scores));
  const BufferId gradient = part_of(context, *sink, parameters.gradient(sink->scores));
  context.kernel(OpKind::attention_sink_backward, FusedAttributes{}, "attention sink", {scores, output.out, output.lse, dout}, {},
                 {gradient});
  context.gave_gradient(sink->scores);
}

void merge_outputs(Context& context, const BlockOutput& part, const BlockOutput& into) {
  context.kernel(OpKind::attention_merge, {}, "attention merge", {part.out, part.lse}, {}, {into.out, into.lse});
}

Attended whole_attention(Context& context, const Heads& heads) {
  const Block block{whole_run(context.sizes.shared()), whole_run(context.sizes.shared())};
  if (is_unfused(context)) return unfused_attention(context, heads, block);
  const BlockOutput output = attend_block(context, heads, block);
  add_sink(context, heads.sink, output);
  return {output.out, [=](Context& c, const Heads& h, BufferId dout) {
            add_sink_backward(c, h.sink, output, dout);
            return attend_block_backward(c, h, block, output, dout);
          }};
}

}  // namespace tandem::scenarios
