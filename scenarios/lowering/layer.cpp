#include "scenarios/lowering/layer.h"

#include <vector>

#include "scenarios/lowering/dropout.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/norm.h"
#include "scenarios/lowering/recompute.h"

namespace tandem::scenarios {
namespace {

/// x + z, of whose elements some are dropped where the scenario says so; leaves the way back to z on the branch's tape.
BufferId add_branch(Context& context, Tape& branch, BufferId x, BufferId z, DropoutSite site) {
  const BufferId y = context.activation(context.shape_of(x));
  if (context.scenario.training.hidden_dropout == 0) {
    context.kernel(OpKind::add, {}, "residual", {x, z}, {y});
    return y;
  }
  const DropoutAttributes attributes = dropout_of_hidden(context, site);
  const BufferId mask = context.activation(context.shape_of(x), DType::u8);
  context.kernel(OpKind::dropout_add, attributes, "residual", {z, x, sequence_numbers(context)}, {y, mask});
  branch.push([=](Context& c, BufferId dy) {
    const BufferId dz = c.activation(c.shape_of(z));
    c.kernel(OpKind::dropout_add_backward, attributes, "residual", {dy, mask}, {dz});
    return dz;
  });
  return y;
}

/// x + branch(x). Backward, the gradient goes through the branch and past it.
BufferId residual(Context& context, Tape& tape, BufferId x, const Module& branch, DropoutSite site) {
  Tape inner;
  const BufferId z = branch(context, inner, x);
  const BufferId y = add_branch(context, inner, x, z, site);
  tape.push([inner = std::move(inner), x](Context& c, BufferId dy) {
    const BufferId through = inner.backward(c, dy);
    const BufferId dx = c.activation(c.shape_of(x));
    c.kernel(OpKind::add, {}, "residual", {dy, through}, {dx});
    return dx;
  });
  return y;
}

BufferId either_attention(Context& context, Tape& tape, const LayerParameters& weights, BufferId x) {
  if (const auto* latent = std::get_if<MlaParameters>(&weights.attention)) return mla(context, tape, *latent, x);
  return attention(context, tape, std::get<AttentionParameters>(weights.attention), x);
}

/// x + branch(norm(x)).
BufferId pre_norm(Context& context, Tape& tape, ParameterId weight, std::string_view name, const Module& branch, DropoutSite site,
                  BufferId x) {
  const Module normed = [weight, name = std::string(name)](Context& c, Tape& t, BufferId in) {
    return norm(c, t, weight, in, name);
  };
  const Module half = [&](Context& c, Tape& t, BufferId in) {
    return c.recompute().norm ? recompute_output(c, t, normed, branch, in) : branch(c, t, normed(c, t, in));
  };
  return residual(context, tape, x, half, site);
}

BufferId both_halves(Context& context, Tape& tape, const LayerParameters& weights, BufferId x) {
  const Module attend = [weights](Context& c, Tape& t, BufferId in) { return either_attention(c, t, weights, in); };
  const Module feed = [weights](Context& c, Tape& t, BufferId in) {
    return weights.mixture ? mixture(c, t, *weights.mixture, in) : mlp(c, t, weights.mlp, in);
  };
  const Module feed_again = [feed](Context& c, Tape& t, BufferId in) { return checkpoint(c, t, feed, in); };
  const BufferId middle =
      pre_norm(context, tape, weights.attention_norm, "attention norm", attend, DropoutSite::attention_output, x);
  return pre_norm(context, tape, weights.mlp_norm, "mlp norm", context.recomputes_mlp() ? feed_again : feed,
                  DropoutSite::mlp_output, middle);
}

}  // namespace

namespace {

std::vector<ParameterId> linear_weights(const Context& context, const LayerParameters& layer) {
  std::vector<ParameterId> weights;
  if (const auto* latent = std::get_if<MlaParameters>(&layer.attention)) {
    weights = {latent->query_up, latent->latent_down, latent->latent_up, latent->output};
    if (context.scenario.model.mla.q_rank > 0) weights.push_back(latent->query_down);
  } else {
    const auto& heads = std::get<AttentionParameters>(layer.attention);
    weights = heads.qkv;
    weights.push_back(heads.output);
  }
  const auto add = [&](const MlpParameters& mlp) { weights.insert(weights.end(), {mlp.up, mlp.down}); };
  if (!layer.mixture) {
    add(layer.mlp);
  } else {
    add(layer.mixture->experts);
    if (layer.mixture->shared) add(*layer.mixture->shared);
  }
  return weights;
}

}  // namespace

LayerParameters declare_layer(const Context& context, ChunkParameters& parameters, std::int64_t layer) {
  const std::string name = "layer" + std::to_string(layer);
  LayerParameters weights;
  weights.attention_norm = declare_norm(context, parameters, name + ".attention_norm");
  if (context.scenario.model.mla.enabled()) {
    weights.attention = declare_mla(context, parameters, name);
  } else {
    weights.attention = declare_attention(context, parameters, name);
  }
  weights.mlp_norm = declare_norm(context, parameters, name + ".mlp_norm");
  if (context.scenario.model.moe.in_layer(layer)) {
    weights.mixture = declare_mixture(context, parameters, name);
  } else {
    weights.mlp = declare_mlp(context, parameters, name, context.sizes.ffn);
  }
  if (context.scenario.training.param_gather && context.scenario.casts_in(layer))
    for (const ParameterId weight : linear_weights(context, weights)) parameters.keep_narrow(weight);
  return weights;
}

BufferId layer(Context& context, Tape& tape, const LayerParameters& weights, BufferId x) {
  const Module whole = [weights](Context& c, Tape& t, BufferId in) { return both_halves(c, t, weights, in); };
  const RecomputeSpec& recompute = context.recompute();
  const bool in_segment = recompute.in_segments() && context.layer < context.scenario.model.layers;  // see chunk_program.cpp
  return recompute.whole(context.layer) && !in_segment ? checkpoint(context, tape, whole, x) : whole(context, tape, x);
}

}  // namespace tandem::scenarios
