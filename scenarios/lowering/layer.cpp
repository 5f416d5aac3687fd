#include "scenarios/lowering/layer.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "scenarios/lowering/dropout.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/norm.h"
#include "scenarios/lowering/recompute.h"

namespace tandem::scenarios {
namespace {

using Streams = std::optional<HyperConnectionParameters>;

/// What a half is called, where dropout falls on it, and how its stream and its branch are added.
struct HalfName {
  std::string norm;
  DropoutSite site;
  ResidualFactors factors;
};

/// x + z, each times its factor, of whose elements some are dropped where the scenario says so; leaves the way back to z on the
/// branch's tape.
BufferId add_branch(Context& context, Tape& branch, BufferId x, BufferId z, const HalfName& name) {
  const BufferId y = context.activation(context.shape_of(x));
  if (name.factors.scale()) {
    const auto alpha = static_cast<float>(name.factors.alpha), beta = static_cast<float>(name.factors.beta);
    context.kernel(OpKind::weighted_sum, WeightedSumAttributes{alpha, beta}, "residual", {x, z}, {y});
    if (beta == 1) return y;
    branch.push([=](Context& c, BufferId dy) {
      const BufferId dz = c.activation(c.shape_of(z));
      c.kernel(OpKind::scale, ScaleAttributes{beta}, "residual", {dy}, {dz});
      return dz;
    });
    return y;
  }
  if (context.scenario.training.hidden_dropout == 0) {
    context.kernel(OpKind::add, {}, "residual", {x, z}, {y});
    return y;
  }
  const DropoutAttributes attributes = dropout_of_hidden(context, name.site);
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
BufferId residual(Context& context, Tape& tape, BufferId x, const Module& branch, const HalfName& name) {
  Tape inner;
  const BufferId z = branch(context, inner, x);
  const BufferId y = add_branch(context, inner, x, z, name);
  tape.push([inner = std::move(inner), x, alpha = static_cast<float>(name.factors.alpha)](Context& c, BufferId dy) {
    const BufferId through = inner.backward(c, dy);
    const BufferId dx = c.activation(c.shape_of(x));
    if (alpha == 1)
      c.kernel(OpKind::add, {}, "residual", {dy, through}, {dx});
    else
      c.kernel(OpKind::weighted_sum, WeightedSumAttributes{alpha, 1}, "residual", {dy, through}, {dx});
    return dx;
  });
  return y;
}

// Where a half is missing, so is its branch.
BufferId lower_half(Context& /*context*/, Tape& /*tape*/, const std::monostate& /*weights*/, BufferId /*x*/) {
  throw std::logic_error("a half of a layer that it does not have");
}
/// Notes that what comes from a norm goes to a linear layer alone, which may have both in one kernel.
void note_norm_before_linear(Context& context, BufferId x) {
  if (x == context.last_norm && !context.recompute().norm) context.inputs_of_norm.insert(x);
}
BufferId lower_half(Context& context, Tape& tape, const AttentionParameters& weights, BufferId x) {
  note_norm_before_linear(context, x);
  return attention(context, tape, weights, x);
}
BufferId lower_half(Context& context, Tape& tape, const MlaParameters& weights, BufferId x) {
  return mla(context, tape, weights, x);
}
BufferId lower_half(Context& context, Tape& tape, const MambaParameters& weights, BufferId x) {
  return mamba(context, tape, weights, x);
}
BufferId lower_half(Context& context, Tape& tape, const GatedDeltaParameters& weights, BufferId x) {
  return gated_delta(context, tape, weights, x);
}
BufferId lower_half(Context& context, Tape& tape, const LightningParameters& weights, BufferId x) {
  return lightning(context, tape, weights, x);
}
BufferId lower_half(Context& context, Tape& tape, const CompressedAttentionParameters& weights, BufferId x) {
  return compressed_attention(context, tape, weights, x);
}
BufferId lower_half(Context& context, Tape& tape, const MlpParameters& weights, BufferId x) {
  note_norm_before_linear(context, x);
  return mlp(context, tape, weights, x);
}
BufferId lower_half(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x) {
  return mixture(context, tape, weights, x);
}

template <typename Half>
Module module_of(const Half& half) {
  return [half](Context& c, Tape& t, BufferId x) {
    return std::visit([&](const auto& weights) { return lower_half(c, t, weights, x); }, half);
  };
}

/// x + branch(x), with norms before and after the branch where the layer has them.
BufferId half(Context& context, Tape& tape, const NormsOfHalf& norms, const Streams& streams, const HalfName& name,
              const Module& branch, BufferId x) {
  const Module normed = [norms, name](Context& c, Tape& t, BufferId in) { return norm(c, t, *norms.before, in, name.norm); };
  if (context.scenario.model.norm_placement == NormPlacement::residual) {
    const Module added = [&](Context& c, Tape& t, BufferId in) { return residual(c, t, in, branch, name); };
    return context.recompute().norm ? recompute_output(context, tape, normed, added, x)
                                    : added(context, tape, normed(context, tape, x));
  }
  const Module whole = [&](Context& c, Tape& t, BufferId in) {
    BufferId z = no_id;
    if (!norms.before)
      z = branch(c, t, in);
    else
      z = c.recompute().norm ? recompute_output(c, t, normed, branch, in) : branch(c, t, normed(c, t, in));
    return norms.after ? norm(c, t, *norms.after, z, "post " + name.norm) : z;
  };
  return streams ? hyper_connection(context, tape, *streams, x, whole) : residual(context, tape, x, whole, name);
}

BufferId both_halves(Context& context, Tape& tape, const LayerParameters& weights, BufferId x) {
  const ModelSpec& model = context.scenario.model;
  const ResidualFactors& of_mixer = model.residual.of(model.layer_kind(context.layer).mixer);
  if (weights.mixer.index() > 0)
    x = half(context, tape, weights.mixer_norms, weights.mixer_streams,
             {"attention norm", DropoutSite::attention_output, of_mixer}, module_of(weights.mixer), x);
  if (weights.feed.index() > 0) {
    const Module feed = module_of(weights.feed);
    const Module feed_again = [feed](Context& c, Tape& t, BufferId in) { return checkpoint(c, t, feed, in); };
    x = half(context, tape, weights.feed_norms, weights.feed_streams, {"mlp norm", DropoutSite::mlp_output, model.residual.mlp},
             context.recomputes_mlp() ? feed_again : feed, x);
  }
  return x;
}

NormsOfHalf declare_norms(const Context& context, ChunkParameters& parameters, const std::string& layer, const char* name) {
  const NormPlacement placement = context.scenario.model.norm_placement;
  NormsOfHalf norms;
  if (placement != NormPlacement::post) norms.before = declare_norm(context, parameters, layer + "." + name);
  if (placement == NormPlacement::post || placement == NormPlacement::both)
    norms.after = declare_norm(context, parameters, layer + ".post_" + name);
  return norms;
}

/// What linear GEMMs read of a half.
struct LinearWeights {
  const Context& context;
  std::vector<ParameterId> found = {};

  void operator()(const std::monostate& /*none*/) {}
  void operator()(const AttentionParameters& weights) {
    found.insert(found.end(), weights.qkv.begin(), weights.qkv.end());
    if (weights.gate) found.push_back(*weights.gate);
    found.push_back(weights.output);
  }
  void operator()(const MlaParameters& weights) {
    found.insert(found.end(), {weights.query_up, weights.latent_down, weights.output});
    if (!weights.indexer) found.push_back(weights.latent_up);  // by heads it is multiplied in bf16
    if (context.scenario.model.mla.q_rank > 0) found.push_back(weights.query_down);
  }
  void operator()(const MambaParameters& weights) { found.insert(found.end(), {weights.in, weights.out}); }
  void operator()(const GatedDeltaParameters& weights) { found.insert(found.end(), {weights.in, weights.out}); }
  void operator()(const LightningParameters& weights) { found.insert(found.end(), {weights.in, weights.gate, weights.out}); }
  void operator()(const CompressedAttentionParameters& weights) {
    found.insert(found.end(), {weights.query_down, weights.query_up, weights.key, weights.output});
    if (weights.compressor) found.push_back(weights.compressor->project);
  }
  void operator()(const MlpParameters& weights) { found.insert(found.end(), {weights.up, weights.down}); }
  void operator()(const MixtureParameters& weights) {
    (*this)(weights.experts);
    if (weights.shared) (*this)(*weights.shared);
    if (weights.latent) found.insert(found.end(), {weights.latent->down, weights.latent->up});
  }
};

std::vector<ParameterId> linear_weights(const Context& context, const LayerParameters& layer) {
  LinearWeights weights{context};
  std::visit(weights, layer.mixer);
  std::visit(weights, layer.feed);
  return weights.found;
}

}  // namespace

LayerParameters declare_layer(const Context& context, ChunkParameters& parameters, std::int64_t layer) {
  return declare_layer(context, parameters, "layer" + std::to_string(layer), layer);
}

LayerParameters declare_layer(const Context& context, ChunkParameters& parameters, const std::string& name, std::int64_t layer) {
  const ModelSpec& model = context.scenario.model;
  const LayerKind kind = model.layer_kind(layer);
  LayerParameters weights;
  if (kind.mixer != Mixer::none) weights.mixer_norms = declare_norms(context, parameters, name, "attention_norm");
  if (is_attention(kind.mixer) && model.compressed.enabled())
    weights.mixer = declare_compressed_attention(context, parameters, name, kind.mixer);
  if (is_attention(kind.mixer) && model.mla.enabled()) weights.mixer = declare_mla(context, parameters, name, kind.mixer);
  if (is_attention(kind.mixer) && !model.mla.enabled() && !model.compressed.enabled())
    weights.mixer = declare_attention(context, parameters, name);
  if (kind.mixer == Mixer::linear_attention) weights.mixer = declare_gated_delta(context, parameters, name);
  if (kind.mixer == Mixer::lightning_attention) weights.mixer = declare_lightning(context, parameters, name);
  if (kind.mixer == Mixer::mamba) weights.mixer = declare_mamba(context, parameters, name);
  if (kind.feed != Feed::none) weights.feed_norms = declare_norms(context, parameters, name, "mlp_norm");
  if (kind.feed == Feed::dense) weights.feed = declare_mlp(context, parameters, name, context.sizes.ffn);
  const bool hashed = layer < std::min(model.moe.hash_layers, model.layers);  // never of what predicts further tokens
  if (kind.feed == Feed::experts) weights.feed = declare_mixture(context, parameters, name, hashed);
  if (model.hyper.enabled() && kind.mixer != Mixer::none)
    weights.mixer_streams = declare_hyper_connection(context, parameters, name + ".attention_streams", true);
  if (model.hyper.enabled() && kind.feed != Feed::none)
    weights.feed_streams = declare_hyper_connection(context, parameters, name + ".mlp_streams", true);
  if (context.scenario.training.param_gather && context.scenario.casts_in(layer))
    for (const ParameterId weight : linear_weights(context, weights)) parameters.keep_narrow(weight);
  return weights;
}

BufferId layer(Context& context, Tape& tape, const LayerParameters& weights, BufferId x) {
  const RecomputeSpec& recompute = context.recompute();
  const bool in_segment = recompute.in_segments() && context.layer < context.scenario.model.layers;  // see chunk_program.cpp
  if (!recompute.whole(context.layer) || in_segment) return both_halves(context, tape, weights, x);
  const Module again = [weights](Context& c, Tape& t, BufferId in) { return both_halves(c, t, weights, in); };
  return checkpoint(context, tape, again, x);
}

}  // namespace tandem::scenarios
