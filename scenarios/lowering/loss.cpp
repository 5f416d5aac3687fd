#include "scenarios/lowering/loss.h"

#include "scenarios/lowering/embedding.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"

namespace tandem::scenarios {
namespace {

void all_reduce(Context& context, BufferId x, Reduction reduction, std::string_view name) {
  if (context.sizes.tp > 1) context.collective(OpKind::all_reduce, Slot::tp, Stream::tp, name, x, x, reduction);
}

/// c tanh(logit / c), in place, where the model has such a cap.
void cap_logits(Context& context, Tape& tape, BufferId logits) {
  const ScaleAttributes cap{static_cast<float>(context.scenario.model.logit_softcap)};
  if (cap.factor == 0) return;
  context.kernel(OpKind::softcap, cap, "logit softcap", {}, {}, {logits});
  tape.push([=](Context& c, BufferId gradient) {
    c.kernel(OpKind::softcap_backward, cap, "logit softcap", {logits}, {}, {gradient});
    return gradient;
  });
}

BufferId scale_logits(Context& context, Tape& tape, BufferId logits) {
  const ScaleAttributes factor{static_cast<float>(context.scenario.model.logit_factor)};
  if (factor.factor == 1) return logits;
  const BufferId scaled = context.activation(context.shape_of(logits));
  context.kernel(OpKind::scale, factor, "logit factor", {logits}, {scaled});
  tape.push([=](Context& c, BufferId gradient) {
    const BufferId of_logits = c.activation(c.shape_of(gradient));
    c.kernel(OpKind::scale, factor, "logit factor", {gradient}, {of_logits});
    return of_logits;
  });
  return scaled;
}

void cross_entropy(Context& context, Tape& tape, BufferId logits, const LossTerm& term) {
  const LocalSizes& n = context.sizes;
  const TrainingSpec& training = context.scenario.training;
  const CrossEntropyAttributes attributes{
      .vocab_start = n.vocab * n.tp_rank,
      .scale = static_cast<float>(
          term.weight / static_cast<double>(training.gradient_batch(context.scenario.parallelism) * training.sequence))};
  const BufferId targets = input(context, InputShard::Content::targets, term.ahead);
  const auto per_token = [&] { return context.activation(Shape(n.sequence, n.batch), DType::f32); };
  const BufferId max = per_token();
  const BufferId sum = per_token();
  const BufferId target = per_token();
  context.kernel(OpKind::cross_entropy_max, attributes, "loss max", {logits}, {max});
  all_reduce(context, max, Reduction::max, "loss max");
  context.kernel(OpKind::cross_entropy_target, attributes, "loss target", {logits, targets}, {target});
  all_reduce(context, target, Reduction::sum, "loss target");
  context.kernel(OpKind::cross_entropy_sum, attributes, "loss sum", {logits, max}, {sum});
  all_reduce(context, sum, Reduction::sum, "loss sum");
  const BufferId value = context.activation(Shape(1), DType::f32);
  context.kernel(OpKind::cross_entropy_loss, attributes, "loss", {max, sum, target}, {value});
  tape.push([=](Context& c, BufferId) {
    const BufferId gradient = c.activation(c.shape_of(logits));
    c.kernel(OpKind::cross_entropy_backward, attributes, "loss", {logits, targets, max, sum}, {gradient});
    return gradient;
  });
}

}  // namespace

EndParameters declare_end(const Context& context, ChunkParameters& parameters, const std::string& prefix, bool ends_streams) {
  EndParameters weights{declare_norm(context, parameters, prefix + "final_norm")};
  if (ends_streams && context.scenario.model.hyper.enabled())
    weights.streams = declare_hyper_connection(context, parameters, prefix + "final_streams", false);
  return weights;
}

BufferId end_of_layers(Context& context, Tape& tape, const EndParameters& weights, BufferId x) {
  if (weights.streams) x = end_streams(context, tape, *weights.streams, x);
  return norm(context, tape, weights.norm, x, "final norm");
}

LossParameters declare_loss(const Context& context, ChunkParameters& parameters, const ParameterId* tied_table, bool looks_up,
                            bool ends_streams) {
  LossParameters weights;
  weights.end = declare_end(context, parameters, "", ends_streams);
  if (tied_table != nullptr) {
    weights.head = *tied_table;
    return weights;
  }
  const ModelSpec& model = context.scenario.model;
  ParameterSpec head = token_table(context, model.tied_embeddings ? "embedding" : "head");
  const auto further = static_cast<int>(model.mtp_depth);
  head.uses = 1 + further + (looks_up && model.tied_embeddings ? further : 0);
  weights.head = parameters.declare(std::move(head));
  return weights;
}

void loss_of_normed(Context& context, Tape& tape, ParameterId head, BufferId normed, const LossTerm& term) {
  const BufferId logits = column_parallel(context, tape, head, normed, "LM head", GemmMath::of_output_proj);
  const BufferId scaled = scale_logits(context, tape, logits);
  cap_logits(context, tape, scaled);
  cross_entropy(context, tape, scaled, term);
}

void loss(Context& context, Tape& tape, const LossParameters& weights, BufferId x, const LossTerm& term) {
  loss_of_normed(context, tape, weights.head, end_of_layers(context, tape, weights.end, x), term);
}

}  // namespace tandem::scenarios
