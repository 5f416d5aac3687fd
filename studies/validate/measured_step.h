#pragma once

#include <optional>
#include <string>

#include "scenarios/spec/scenario.h"
#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// The FLOPs of a step over all GPUs that a formula counts.
struct CountedFlops {
  double flops = 0;
  bool verified = true;  ///< whether the formula's name says how attention counts
};

/// Returns what the formula that a row names in `flops_formula` counts, by its words in small letters:
/// - "sc21", "96bs": 96 B s l h^2 (1 + s / 6h + V / 16lh), Narayanan et al. 2021 (arXiv 2104.04473), equation 3: forward,
///   backward and full recomputation, every token attending to all.
/// - "72bs": 72 B s l h^2 (1 + s / 6h + V / 12lh), Korthikanti et al. 2022 (arXiv 2205.05198), equation 7: without recomputation.
/// - else model FLOPs: 6 per token and weight that multiplies it (of experts the top_k, not the table of the input
///   embedding), and 12 l s (width of all heads) per token for attention. Half of the latter where the words say "causal" and not
///   "non-causal".
/// Unverified where the words are "unverified", "unstated" or say nothing of the kind; attention then counts in full, as in the
/// formulas above, unless they say "causal".
CountedFlops counted_flops(const std::string& words, const Scenario& scenario);

/// A run's step time as it was measured.
struct MeasuredStep {
  std::optional<Seconds> time;  ///< absent where the row has nothing to derive it from
  std::string note;             ///< how the time was derived; empty where it was given
};

/// Returns `step_time_s`, else the batch over `tokens_per_s_per_gpu`, else the FLOPs of `flops_formula` over `tflops_per_gpu`, or
/// over `mfu_pct` of the GPU's dense peak at the run's precision.
MeasuredStep measured_step(const RunRow& row, const Scenario& scenario);

}  // namespace tandem::studies
