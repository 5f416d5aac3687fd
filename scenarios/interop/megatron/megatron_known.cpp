#include "scenarios/interop/megatron/megatron_known.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/csv.h"
#include "runtime/base/embedded_file.h"
#include "scenarios/shell/patterns.h"

namespace tandem::scenarios {

std::span<const EmbeddedFile> embedded_megatron_known();

namespace {

struct EffectRow {
  std::string pattern;
  ArgumentEffect effect;
};

const std::vector<EffectRow>& effect_rows() {
  static const std::vector<EffectRow> rows = [] {
    std::vector<EffectRow> all;
    const EmbeddedFile& file = embedded_megatron_known().front();
    for (const auto& row : parse_csv(std::string(file.text), std::string(file.path)).rows) {
      const std::string& effect = row[1].text;
      const auto kind = effect == "none"      ? ArgumentEffect::Kind::none
                        : effect == "changes" ? ArgumentEffect::Kind::changes
                                              : ArgumentEffect::Kind::forbids;
      all.push_back({row[0].text, {.kind = kind, .why = row[2].text}});
    }
    return all;
  }();
  return rows;
}

/// Older and others' names: Megatron-LM's own, Pai-Megatron-Patch's and MindSpeed-LLM's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> other_names{
    {{"use-custom-fsdp", "use-megatron-fsdp"},
     {"cuda-graph-modules", "cuda-graph-scope"},
     {"model-parallel-size", "tensor-model-parallel-size"},
     {"encoder-num-layers", "num-layers"},
     {"encoder-seq-length", "seq-length"},
     {"fp8-hybrid", "fp8-format"},
     {"checkpoint-num-layers", "recompute-num-layers"},
     {"qk-nope-head-dim", "qk-head-dim"},
     {"qk-rope-head-dim", "qk-pos-emb-head-dim"},
     {"num-mtp-predictor", "mtp-num-layers"},
     {"multi-head-latent-attention", "multi-latent-attention"},
     {"moe-intermediate-size", "moe-ffn-hidden-size"},
     {"n-group", "moe-router-num-groups"},
     {"topk-group", "moe-router-group-topk"},
     {"routed-scaling-factor", "moe-router-topk-scaling-factor"}}};

}  // namespace

ArgumentEffect effect_of_argument(std::string_view name) {
  for (const EffectRow& row : effect_rows())
    if (shell::matches_pattern(name, row.pattern)) return row.effect;
  return {};
}

std::string usual_name(std::string_view name) {
  for (const auto& [other, usual] : other_names)
    if (name == other) return std::string(usual);
  return std::string(name);
}

}  // namespace tandem::scenarios
