#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>

#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/spec/names.h"
#include "studies/lint/rules.h"

namespace tandem::studies {

/// Tokens of a step: GPT-3 175B 3.2 million (Brown et al. 2020, arXiv 2005.14165, table 2.1), of its small models 0.5 million;
/// Llama 3 405B up to 16 million (arXiv 2407.21783, section 3.4.1); DeepSeek-V3 15,360 * 4,096 = 63 million (arXiv 2412.19437,
/// section 4.2).
void unusual_batch(LintContext& context) {
  const TrainingSpec& t = context.scenario.training;
  constexpr double least = 0.5e6, most = 63e6, million = 1e6;
  const double tokens = static_cast<double>(t.global_batch) * static_cast<double>(t.sequence);
  if (tokens >= least && tokens <= most) return;
  context.find(
      Severity::advice, "unusual-batch", {"training.global_batch", "training.sequence"},
      fmt::format(
          "{:.3g} million tokens per step; published runs take 0.5 (GPT-3's small models) to 63 million (DeepSeek-V3), beyond "
          "which {}",
          tokens / million, tokens < least ? "steps are noisy and GPUs have little to do" : "more tokens per step teach less"));
}

/// The busiest rank's choices, against the mean.
void uneven_experts(LintContext& context) {
  const MoeSpec& moe = context.scenario.model.moe;
  if (moe.experts == 0 || (moe.load.shares.empty() && moe.load.zipf == 0)) return;
  const std::int64_t sequence = context.scenario.training.sequence;
  const std::vector<std::int32_t> slots = slots_by_expert(moe, sequence, node_limit_of(context.scenario));
  const std::int64_t ranks = context.scenario.parallelism.ep, of_rank = moe.experts / ranks;
  std::int64_t busiest = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto first = slots.begin() + rank * of_rank;
    busiest = std::max(busiest, std::accumulate(first, first + of_rank, std::int64_t{0}));
  }
  const double mean =
      static_cast<double>(std::accumulate(slots.begin(), slots.end(), std::int64_t{0})) / static_cast<double>(ranks);
  const double imbalance = static_cast<double>(busiest) / mean;
  constexpr double tolerable = 1.1;
  if (imbalance <= tolerable) return;
  Finding& found =
      context.find(Severity::warning, "uneven-experts", {"model.moe.load"},
                   fmt::format("the busiest of {} expert ranks gets {:.2f} times the mean of the tokens, and all wait for it",
                               ranks, imbalance));
  found.fix = {"model.moe.load=uniform"};
}

/// Options that cost nothing where they can be had.
void idle_options(LintContext& context) {
  const Scenario& s = context.scenario;
  const ParallelismSpec& p = s.parallelism;
  const auto advise = [&](const char* rule, const std::vector<std::string>& fields, const std::string& sentence,
                          const char* fix) {
    Finding& found = context.find(Severity::advice, rule, fields, sentence);
    found.fix = {fix};
    found.only_if_faster = true;
  };
  if (p.tp > 1 && !p.sp)
    advise("no-sequence-parallelism", {"parallelism.sp", "parallelism.tp"},
           fmt::format(
               "{} without sp: norms and residuals are computed and kept {} times (Korthikanti et al. 2022, arXiv 2205.05198)",
               named(Axis::tp, p.tp), p.tp),
           "parallelism.sp=true");
  if (!s.training.overlap_dp && p.data_replicas() * p.cp > 1)
    advise("no-gradient-overlap", {"training.overlap.dp", "training.overlap"},
           "gradients are reduced after the backward instead of beside it", "training.overlap.dp=true");
  if (s.training.recompute.every > 0 || s.training.recompute.attention || s.training.recompute.mlp)
    advise("needless-recompute", {"training.recompute"}, "activations are computed twice, though there is memory to keep them",
           s.training.recompute.every > 1     ? "training={recompute: none, recompute_every: }"
           : s.training.recompute.segment > 1 ? "training={recompute: none, recompute_segment: }"
                                              : "training.recompute=none");
  if (p.sp && !s.training.overlap_tp)
    advise("no-tensor-overlap", {"training.overlap.tp", "training.overlap", "parallelism.tp"},
           "tensor-parallel collectives stand between the products instead of beside them", "training.overlap.tp=true");
}

Bytes comfortable_memory(const StepResult& step) {
  constexpr double scarce = 0.05;
  return static_cast<Bytes>((1 - scarce) * static_cast<double>(step.gpu_memory));
}

void memory_left(LintContext& context, const StepResult& step) {
  constexpr double giga = 1e9;
  if (step.peak_memory() <= comfortable_memory(step)) return;
  std::string sizes = fmt::format("the fullest stage needs {:.1f} GB of a GPU's {:.1f} GB",
                                  static_cast<double>(step.peak_memory()) / giga, static_cast<double>(step.gpu_memory) / giga);
  if (step.fits()) {
    sizes += step.device_memory ? fmt::format(", {:.1f} GB with what PyTorch's allocator keeps, NCCL and CUDA",
                                              static_cast<double>(step.device_memory->device()) / giga)
                                : ": fragments and NCCL's buffers take a few percent more";
  }
  context.find(step.fits() ? Severity::warning : Severity::error, step.fits() ? "little-memory-left" : "does-not-fit",
               {"training.micro_batch", "training.recompute", "parallelism.tp", "parallelism.pp"}, sizes);
}

}  // namespace tandem::studies
