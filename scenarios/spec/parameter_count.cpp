#include "scenarios/spec/parameter_count.h"

#include <cmath>

namespace tandem::scenarios {
namespace {

class Parameters {
 public:
  /// `experts`: how many of a layer's routed experts count.
  Parameters(const ModelSpec& model, double experts) : m_(model), experts_(experts) {}

  std::int64_t all() const {
    const std::int64_t tables = (m_.tied_embeddings ? 1 : 2) * m_.vocab * m_.hidden;
    const std::int64_t positions = m_.rotary ? 0 : m_.max_positions * m_.hidden;
    std::int64_t sum = tables + positions + norm(m_.hidden) + streams(m_.hyper.streams, 1);
    for (std::int64_t l = 0; l < m_.layers + m_.mtp_depth; ++l) sum += layer(l);
    const std::int64_t further = 2 * norm(m_.hidden) + 2 * m_.hidden * m_.hidden + norm(m_.hidden) + streams(m_.hyper.streams, 1);
    return sum + m_.mtp_depth * further + encoder();
  }

 private:
  const ModelSpec& m_;
  double experts_;

  std::int64_t encoder() const {
    const EncoderSpec& e = m_.encoder;
    if (!e.enabled()) return 0;
    const ModelSpec model = m_.of_encoder();
    const Parameters of_encoder(model, 0);
    const std::int64_t rows = e.learned_positions + (e.class_token ? 1 : 0) + (e.patch_bias ? 1 : 0);
    const std::int64_t norms = (e.first_norm ? 2 : 1) * of_encoder.norm(e.hidden);
    std::int64_t projector = e.projector_norm ? norm(e.merged()) : 0;
    for (const auto& [outputs, inputs] : e.products(m_.hidden)) projector += outputs * (inputs + (e.projector_bias ? 1 : 0));
    return (e.patch_width + rows) * e.hidden + e.layers * of_encoder.layer(0) + norms + projector;
  }

  std::int64_t norm(std::int64_t width) const { return (m_.norm == NormKind::layer ? 2 : 1) * width; }
  std::int64_t layer(std::int64_t number) const {
    const LayerKind kind = m_.layer_kind(number);
    std::int64_t sum = 0;
    const std::int64_t norms = (m_.norm_placement == NormPlacement::both ? 2 : 1) * norm(m_.hidden);
    if (kind.mixer != Mixer::none) sum += norms;
    if (is_attention(kind.mixer)) sum += m_.compressed.enabled() ? compressed_attention(kind.mixer) : attention();
    if (kind.mixer == Mixer::mamba) sum += mamba();
    if (kind.mixer == Mixer::linear_attention) sum += linear_attention();
    if (kind.mixer == Mixer::lightning_attention) sum += lightning();
    if (kind.feed != Feed::none) sum += norms + mlp(kind.feed);
    if (kind.mixer != Mixer::none) sum += streams(m_.hyper.gates(), 3);
    if (kind.feed != Feed::none) sum += streams(m_.hyper.gates(), 3);
    return sum;
  }

  /// What makes so many gates of the residual streams.
  std::int64_t streams(std::int64_t gates, std::int64_t factors) const {
    return m_.hyper.enabled() ? gates * (m_.hyper.streams * m_.hidden + 1) + factors : 0;
  }

  std::int64_t norms_of_heads() const {
    if (m_.qk_norm == QkNorm::none || m_.qk_norm == QkNorm::unit) return 0;
    return m_.qk_norm == QkNorm::head ? 2 * norm(m_.head_dim) : norm(m_.heads * m_.head_dim) + norm(m_.kv_heads * m_.head_dim);
  }

  std::int64_t attention() const {
    const MlaSpec& mla = m_.mla;
    const std::int64_t h = m_.hidden, heads = m_.heads;
    if (!mla.enabled())
      return h * (heads + 2 * m_.kv_heads) * m_.head_dim + (m_.attention_gate ? 2 : 1) * heads * m_.head_dim * h +
             norms_of_heads() + (m_.attention_sinks ? heads : 0) + biases_of_attention();
    const std::int64_t queries =
        mla.q_rank > 0 ? mla.q_rank * (h + heads * mla.qk_dim()) + norm(mla.q_rank) : h * heads * mla.qk_dim();
    const std::int64_t latent = h * (mla.kv_rank + mla.rope_dim) + norm(mla.kv_rank);
    return queries + latent + mla.kv_rank * heads * (mla.nope_dim + mla.v_dim) + heads * mla.v_dim * h + indexer();
  }

  /// Of keys so wide, from values and scores of `halves` times that.
  std::int64_t compressor(std::int64_t width, std::int64_t halves, std::int64_t ratio) const {
    return halves * width * (2 * m_.hidden + ratio) + norm(width);
  }

  std::int64_t compressed_attention(Mixer mixer) const {
    const CompressedAttentionSpec& c = m_.compressed;
    const std::int64_t heads = m_.heads * m_.head_dim;
    const std::int64_t queries = m_.hidden * c.q_rank + norm(c.q_rank) + c.q_rank * heads;
    const std::int64_t output = heads * c.output_rank + c.output_groups * c.output_rank * m_.hidden;
    std::int64_t sum = queries + m_.hidden * m_.head_dim + norm(m_.head_dim) + output + (m_.attention_sinks ? m_.heads : 0);
    if (mixer == Mixer::heavily_compressed_attention) sum += compressor(m_.head_dim, 1, c.heavy_ratio);
    if (mixer == Mixer::compressed_sparse_attention)
      sum += compressor(m_.head_dim, 2, c.sparse_ratio) + compressor(c.index_head_dim, 2, c.sparse_ratio) +
             c.index_heads * (c.q_rank * c.index_head_dim + m_.hidden);
    return sum;
  }

  std::int64_t biases_of_attention() const {
    const AttentionBias biases = m_.biases_of_attention();
    if (biases == AttentionBias::none) return 0;
    return (m_.heads + 2 * m_.kv_heads) * m_.head_dim + (biases == AttentionBias::all ? m_.hidden : 0);
  }

  /// Its key has a LayerNorm whatever the model has.
  std::int64_t indexer() const {
    const IndexerSpec& indexer = m_.indexer;
    if (!indexer.enabled()) return 0;
    const std::int64_t queries = m_.mla.q_rank > 0 ? m_.mla.q_rank : m_.hidden;
    return queries * indexer.heads * indexer.head_dim + m_.hidden * (indexer.head_dim + indexer.heads) + 2 * indexer.head_dim;
  }

  std::int64_t mamba() const {
    const MambaSpec& mamba = m_.mamba;
    const std::int64_t projections = m_.hidden * (mamba.projected() + mamba.inner());
    return projections + mamba.mixed() * (mamba.conv + 1) + 3 * mamba.heads + mamba.inner();
  }

  std::int64_t linear_attention() const {
    const LinearAttentionSpec& linear = m_.linear_attention;
    const std::int64_t projections = m_.hidden * (linear.projected() + linear.values());
    return projections + linear.mixed() * linear.conv + 2 * linear.value_heads + linear.value_dim;
  }

  std::int64_t lightning() const { return m_.hidden * (m_.lightning.projected() + m_.lightning.inner()) + m_.lightning.inner(); }

  std::int64_t mlp(Feed feed) const {
    const std::int64_t matrices = m_.gated ? 3 : 2;
    if (feed == Feed::dense) return matrices * m_.hidden * m_.ffn + (m_.linear_bias ? (matrices - 1) * m_.ffn + m_.hidden : 0);
    const MoeSpec& moe = m_.moe;
    const std::int64_t biases = moe.linear_bias ? (matrices - 1) * moe.ffn + moe.row_width(m_.hidden) : 0;
    const std::int64_t expert = matrices * moe.row_width(m_.hidden) * moe.ffn + biases, shared = matrices * m_.hidden * moe.ffn;
    return std::llround(static_cast<double>(expert) * experts_) + shared * moe.shared_experts +
           m_.hidden * (moe.experts + 2 * moe.latent + (moe.shared_gate ? 1 : 0)) + (moe.router_bias ? moe.experts : 0);
  }
};

}  // namespace

ModelSpec ModelSpec::of_encoder() const {
  ModelSpec model;
  model.name = "encoder";
  model.layers = encoder.layers;
  model.hidden = encoder.hidden;
  model.heads = model.kv_heads = encoder.heads;
  model.head_dim = encoder.heads > 0 ? encoder.hidden / encoder.heads : 0;
  model.ffn = encoder.ffn;
  model.gated = encoder.gated;
  model.activation = encoder.activation;
  model.norm = encoder.norm;
  model.linear_bias = encoder.linear_bias;
  model.rotary = encoder.rotary;
  model.rotary_base = 10'000;  // Qwen2-VL's
  model.causal = false;
  return model;
}

std::int64_t parameter_count(const ModelSpec& model) { return Parameters(model, static_cast<double>(model.moe.experts)).all(); }

std::int64_t active_parameter_count(const ModelSpec& model) { return Parameters(model, model.moe.experts_per_token()).all(); }

}  // namespace tandem::scenarios
