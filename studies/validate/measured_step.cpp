#include "studies/validate/measured_step.h"

namespace tandem::studies {
namespace {

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

/// Of a GPT as the papers mean it: an MLP of four times the hidden width, as many key as query heads.
double gpt_flops(const Scenario& scenario, double factor, double vocab_divisor) {
  const ModelSpec& m = scenario.model;
  const auto l = static_cast<double>(m.layers), h = static_cast<double>(m.hidden), v = static_cast<double>(m.vocab);
  const auto s = static_cast<double>(scenario.training.sequence), b = static_cast<double>(scenario.training.global_batch);
  return factor * b * s * l * h * h * (1 + s / (6 * h) + v / (vocab_divisor * l * h));
}

/// Weights of a layer that multiply each token.
double active_weights(const ModelSpec& m, std::int64_t layer) {
  const auto d = [](std::int64_t size) { return static_cast<double>(size); };
  const double h = d(m.hidden), heads = d(m.heads);
  const LayerKind kind = m.layer_kind(layer);
  // Of Mamba-2 as Megatron-LM reports it: the scan is 7 * heads * head_dim * state FLOPs (megatron/training/training.py).
  const double mamba = h * d(m.mamba.projected() + m.mamba.inner()) + 3.5 * d(m.mamba.inner() * m.mamba.state);
  double mixer = kind.mixer == Mixer::mamba ? mamba : 0;
  if (kind.mixer == Mixer::linear_attention) {  // and of the rule what passes through the state
    const LinearAttentionSpec& a = m.linear_attention;
    mixer = h * d(a.projected() + a.values()) + 3 * d(a.value_heads * a.key_dim * a.value_dim);
  }
  if (kind.mixer == Mixer::lightning_attention)
    mixer = h * d(m.lightning.projected() + m.lightning.inner()) + 2 * d(m.lightning.inner() * m.lightning.head_dim);
  if (is_attention(kind.mixer)) mixer = h * d(m.head_dim) * (2 * heads + 2 * d(m.kv_heads));
  if (is_attention(kind.mixer) && m.mla.enabled()) {
    const MlaSpec& a = m.mla;
    const double queries = a.q_rank > 0 ? h * d(a.q_rank) + d(a.q_rank) * heads * d(a.qk_dim()) : h * heads * d(a.qk_dim());
    mixer = queries + h * d(a.kv_rank + a.rope_dim) + d(a.kv_rank) * heads * d(a.nope_dim + a.v_dim) + heads * d(a.v_dim) * h;
  }
  const double matrices = m.gated ? 3 : 2;
  if (kind.feed == Feed::none) return mixer;
  if (kind.feed == Feed::dense) return mixer + matrices * h * d(m.ffn);
  const double widths = d(m.moe.top_k * m.moe.row_width(m.hidden) + m.moe.shared_experts * m.hidden);
  return mixer + matrices * d(m.moe.ffn) * widths + h * d(m.moe.experts + 2 * m.moe.latent);
}

double model_flops(const Scenario& scenario, double attended) {
  const ModelSpec& m = scenario.model;
  const auto sequence = static_cast<double>(scenario.training.sequence);
  const std::int64_t head_widths = m.mla.enabled() ? m.mla.qk_dim() + m.mla.v_dim : 2 * m.head_dim;
  double weights = static_cast<double>(m.hidden) * static_cast<double>(m.vocab), scores = 0;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    weights += active_weights(m, layer);
    if (is_attention(m.layer_kind(layer).mixer)) scores += sequence * static_cast<double>(m.heads * head_widths);
  }
  return 6 * (weights + attended * scores) * sequence * static_cast<double>(scenario.training.global_batch);
}

}  // namespace

CountedFlops counted_flops(const std::string& words, const Scenario& scenario) {
  const bool doubted = says(words, "unverified") || says(words, "unstated");
  if (says(words, "sc21") || says(words, "96bs")) return {gpt_flops(scenario, 96, 16), !doubted};
  if (says(words, "72bs")) return {gpt_flops(scenario, 72, 12), !doubted};
  const bool full = says(words, "non-causal"), half = says(words, "causal") && !full && !says(words, "causal or not");
  return {model_flops(scenario, half ? 0.5 : 1.0), !doubted && (full || half)};
}

MeasuredStep measured_step(const RunRow& row, const Scenario& scenario) {
  if (const auto time = row.number("step_time_s")) return {time, ""};
  const auto gpus = static_cast<double>(scenario.parallelism.world_size());
  const double tokens = static_cast<double>(scenario.training.sequence) * static_cast<double>(scenario.training.global_batch);
  if (const auto rate = row.number("tokens_per_s_per_gpu")) return {tokens / (gpus * *rate), "step time from tokens/s/GPU"};
  const std::optional<double> tflops = row.number("tflops_per_gpu"), mfu = row.number("mfu_pct");
  if (!tflops && !mfu) return {{}, "nothing was measured that gives a step time"};
  const CountedFlops counted = counted_flops(row.name("flops_formula"), scenario);
  const double peak = scenario.cluster.gpu.peak[static_cast<std::size_t>(scenario.training.precision)];
  const double rate = tflops ? *tflops * 1e12 : *mfu / 100 * peak;
  std::string note = tflops ? "step time from TFLOP/s" : "step time from MFU";
  note += counted.verified ? " by " : ", whose formula is unverified: ";
  note += row.has("flops_formula") ? row.text("flops_formula") : "model FLOPs, attention in full";
  return {counted.flops / (gpus * rate), std::move(note)};
}

}  // namespace tandem::studies
