#include "scenarios/spec/model_flops.h"

#include <algorithm>

namespace tandem::scenarios {
namespace {

/// Keys that a query of a document sees on average, where the diagonal counts half.
double seen_keys(const ModelSpec& model, Mixer mixer, std::int64_t tokens) {
  const auto all = static_cast<double>(tokens);
  if (!model.causal) return all;
  if (model.indexer.enabled()) {
    const double chosen = std::min(static_cast<double>(model.indexer.top_k), all);
    return chosen - chosen * chosen / (2 * all);
  }
  if (mixer == Mixer::chunked_attention) return std::min(static_cast<double>(model.attention_chunk), all) / 2;
  const double window = mixer == Mixer::sliding_attention ? std::min(static_cast<double>(model.window), all) : all;
  return window - window * window / (2 * all);
}

double seen_keys(const ModelSpec& model, Mixer mixer, const DocumentTotals& packed) {
  double seen = 0;
  const auto all = static_cast<double>(packed.tokens());
  for (const auto& [tokens, documents] : packed.of_length)
    seen += seen_keys(model, mixer, tokens) * (static_cast<double>(tokens * documents) / all);
  return seen;
}

/// Compressed keys that the queries of a sequence see, on average.
double compressed_keys_seen(const ModelSpec& model, Mixer mixer, std::int64_t sequence) {
  const auto ratio = static_cast<double>(model.compressed.ratio_of(mixer));
  const auto most = static_cast<double>(model.compressed.keys_of(mixer, sequence));
  const double all = static_cast<double>(sequence) / ratio;
  return most > 0 ? most - most * most / (2 * all) : 0;
}

/// As below, where all heads share one key; an indexer's projections, whose gradients go no further, and its scores of all
/// compressed keys that a query sees count two passes.
double compressed_attention_flops_per_token(const ModelSpec& model, Mixer mixer, const DocumentTotals& packed) {
  const CompressedAttentionSpec& c = model.compressed;
  const std::int64_t heads = model.heads * model.head_dim, sequence = packed.longest();
  std::int64_t weights = model.hidden * c.q_rank + c.q_rank * heads + model.hidden * model.head_dim + heads * c.output_rank +
                         c.output_groups * c.output_rank * model.hidden;
  double indexer = 0;
  if (mixer == Mixer::heavily_compressed_attention) weights += 2 * model.hidden * model.head_dim;
  if (mixer == Mixer::compressed_sparse_attention) {
    weights += 4 * model.hidden * model.head_dim;
    const std::int64_t width = c.index_heads * c.index_head_dim;
    const std::int64_t of_indexer = c.q_rank * width + model.hidden * (c.index_heads + 4 * c.index_head_dim);
    const double all = static_cast<double>(sequence) / static_cast<double>(c.sparse_ratio) / 2;
    indexer = (4 * static_cast<double>(of_indexer) + 2 * all * static_cast<double>(width) +
               2 * compressed_keys_seen(model, mixer, sequence) * static_cast<double>(heads + 3 * width)) /
              3;
  }
  const double seen = seen_keys(model, Mixer::sliding_attention, packed) + compressed_keys_seen(model, mixer, sequence);
  return 2 * static_cast<double>(weights) + 4 * seen * static_cast<double>(heads) + indexer;
}

/// Forward: projections, and the two products of every query with the keys and values that it sees, or all where it does.
double attention_flops_per_token(const ModelSpec& model, Mixer mixer, const DocumentTotals& packed) {
  if (model.compressed.enabled()) return compressed_attention_flops_per_token(model, mixer, packed);
  const MlaSpec& mla = model.mla;
  const std::int64_t h = model.hidden, heads = model.heads;
  const std::int64_t value_dim = mla.enabled() ? mla.v_dim : model.head_dim;
  std::int64_t weights = (model.attention_gate ? 2 : 1) * heads * value_dim * h;
  if (mla.enabled()) {
    weights += mla.q_rank > 0 ? mla.q_rank * (h + heads * mla.qk_dim()) : h * heads * mla.qk_dim();
    weights += h * (mla.kv_rank + mla.rope_dim) + mla.kv_rank * heads * (mla.nope_dim + mla.v_dim);
  } else {
    weights += h * (heads + 2 * model.kv_heads) * model.head_dim;
  }
  // To chosen keys all heads attend in the form of the latents.
  const bool is_sparse = model.indexer.enabled();
  const std::int64_t widths = is_sparse ? 2 * mla.kv_rank + mla.rope_dim : model.head_dim + value_dim;
  return 2 * static_cast<double>(weights) + 2 * seen_keys(model, mixer, packed) * static_cast<double>(heads * widths);
}

/// Forward and backward of an indexer: its projections and their weights' gradients, for nothing goes back to what they read; the
/// scores of all keys that a query sees; and of those that it learns from attention's scores once more, and its own with two
/// products of their gradients.
double indexer_flops_per_token(const ModelSpec& model, std::int64_t sequence) {
  const IndexerSpec& indexer = model.indexer;
  if (!indexer.enabled()) return 0;
  const std::int64_t queries = model.mla.q_rank > 0 ? model.mla.q_rank : model.hidden;
  const std::int64_t width = indexer.heads * indexer.head_dim;
  const std::int64_t weights = queries * width + model.hidden * (indexer.head_dim + indexer.heads);
  const double all = static_cast<double>(sequence) / 2;
  const double learnt = indexer.sparse_loss ? seen_keys(model, Mixer::full_attention, sequence) : all;
  const std::int64_t of_attention = model.heads * (model.mla.kv_rank + model.mla.rope_dim);
  return 4 * static_cast<double>(weights) + 2 * all * static_cast<double>(width) +
         2 * learnt * static_cast<double>(of_attention + 3 * width);
}

/// Forward: projections, and the products of the scan in chunks (runtime/ops/ssd_scan.h), where a position sees half of its
/// chunk.
double mamba_flops_per_token(const ModelSpec& model) {
  const MambaSpec& mamba = model.mamba;
  const std::int64_t weights = model.hidden * (mamba.projected() + mamba.inner());
  const std::int64_t states = 2 * mamba.inner() * mamba.state, keys = mamba.chunk * mamba.groups * mamba.state;
  return 2 * static_cast<double>(weights + states + keys) + static_cast<double>(mamba.inner() * mamba.chunk);
}

/// Forward: projections, and the products of the rule in chunks (runtime/ops/delta_rule.h).
double linear_attention_flops_per_token(const ModelSpec& model) {
  const LinearAttentionSpec& linear = model.linear_attention;
  const auto chunk = static_cast<double>(linear.chunk);
  const std::int64_t weights = model.hidden * (linear.projected() + linear.values());
  const std::int64_t states = 6 * linear.key_dim * linear.value_dim;
  const double in_chunk = chunk * static_cast<double>(6 * linear.key_dim + 4 * linear.value_dim) + chunk * chunk / 3;
  return 2 * static_cast<double>(weights) + static_cast<double>(linear.value_heads) * (static_cast<double>(states) + in_chunk);
}

/// Forward: projections, and the products in chunks (runtime/ops/lightning_attention.h).
double lightning_flops_per_token(const ModelSpec& model) {
  const LightningSpec& lightning = model.lightning;
  const std::int64_t weights = model.hidden * (lightning.projected() + lightning.inner());
  const std::int64_t of_head = 4 * lightning.head_dim * lightning.head_dim + 2 * lightning.head_dim * (lightning.chunk + 1);
  return 2 * static_cast<double>(weights) + static_cast<double>(lightning.heads * of_head);
}

/// Forward. A token passes the router's outputs, too.
double feed_flops_per_token(const ModelSpec& model, Feed feed) {
  const double matrices = model.gated ? 3 : 2;
  const MoeSpec& moe = model.moe;
  double weights = 0;
  const auto hidden = static_cast<double>(model.hidden);
  if (feed == Feed::dense) weights = matrices * hidden * static_cast<double>(model.ffn);
  if (feed == Feed::experts)
    weights = matrices * static_cast<double>(moe.ffn) *
                  (moe.experts_per_token() * static_cast<double>(moe.row_width(model.hidden)) +
                   static_cast<double>(moe.shared_experts) * hidden) +
              hidden * static_cast<double>(moe.experts + 2 * moe.latent + (moe.shared_gate ? 1 : 0));
  return 2 * weights;
}

/// Forward, of the gates of residual streams: those of a layer's halves, or of the end of the streams.
double stream_flops_per_token(const ModelSpec& model, std::int64_t gates) {
  return model.hyper.enabled() ? 2 * static_cast<double>(gates * model.hyper.streams * model.hidden) : 0;
}

/// Forward, of all images of a sequence.
double encoder_flops(const ModelSpec& model) {
  const EncoderSpec& e = model.encoder;
  if (!e.enabled()) return 0;
  const ModelSpec layers = model.of_encoder();
  const double of_layer = attention_flops_per_token(layers, Mixer::full_attention, {.of_length = {{e.rows(), 1}}}) +
                          feed_flops_per_token(layers, Feed::dense);
  std::int64_t projector = 0;
  for (const auto& [outputs, inputs] : e.products(model.hidden)) projector += outputs * inputs;
  return static_cast<double>(e.positions()) * static_cast<double>(e.layers) * of_layer +
         2 * static_cast<double>(e.images * e.patches * e.patch_width * e.hidden + e.tokens() * projector);
}

}  // namespace

double model_flops_per_token(const ModelSpec& model, std::int64_t sequence) {
  return model_flops_per_token(model, {.of_length = {{sequence, 1}}}) + encoder_flops_per_token(model, sequence);
}

double model_flops_per_token(const ModelSpec& model, const DocumentTotals& packed) {
  const auto h = static_cast<double>(model.hidden), depths = static_cast<double>(model.mtp_depth);
  const auto streams = static_cast<double>(model.hyper.streams);
  double forward = (1 + depths) * 2 * h * static_cast<double>(model.vocab) + depths * (streams + 1) * 2 * h * h;
  for (std::int64_t l = 0; l < model.layers + model.mtp_depth; ++l) {
    const LayerKind kind = model.layer_kind(l);
    if (is_attention(kind.mixer)) forward += attention_flops_per_token(model, kind.mixer, packed);
    if (kind.mixer == Mixer::linear_attention) forward += linear_attention_flops_per_token(model);
    if (kind.mixer == Mixer::lightning_attention) forward += lightning_flops_per_token(model);
    if (kind.mixer == Mixer::mamba) forward += mamba_flops_per_token(model);
    forward += feed_flops_per_token(model, kind.feed);
    const int halves = (kind.mixer != Mixer::none ? 1 : 0) + (kind.feed != Feed::none ? 1 : 0);
    forward += halves * stream_flops_per_token(model, model.hyper.gates());
  }
  forward += (1 + depths) * stream_flops_per_token(model, model.hyper.streams);
  double indexers = 0;
  for (std::int64_t l = 0; l < model.layers + model.mtp_depth; ++l)
    if (is_attention(model.layer_kind(l).mixer))
      indexers += indexer_flops_per_token(model, packed.longest());  // no documents beside it
  return 3 * forward + indexers;
}

double encoder_flops_per_token(const ModelSpec& model, std::int64_t sequence) {
  const double passes = model.encoder.frozen ? 1 : 3;
  return passes * encoder_flops(model) / static_cast<double>(sequence);
}

double padding_flops_share(const ModelSpec& model, const DocumentTotals& packed) {
  if (packed.padding == 0) return 0;
  const DocumentTotals unpadded{.of_length = packed.unpadded};
  const double needed = model_flops_per_token(model, unpadded) * static_cast<double>(unpadded.tokens());
  return 1 - needed / (model_flops_per_token(model, packed) * static_cast<double>(packed.tokens()));
}

}  // namespace tandem::scenarios
