#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "studies/step/interval_table.h"

namespace tandem::studies {

/// A measured step beside its prediction.
struct MeasuredError {
  std::string source;
  StepClass step;
  double log_ratio = 0;  ///< ln(predicted / measured)
  double expected = 0;   ///< the standard error that its parts let expect
  Seconds predicted = 0;
  /// Where a constant of the GPU was fitted to steps: what ln(predicted) changes by with the value that one would take without.
  std::optional<double> without_steps;
};

/// Makes the table of intervals by split-conformal prediction (Lei et al., JASA 2018) with sources as what is exchanged: a row's
/// score is |ln(predicted / measured)| over its expected error, with the speed of its GPU as it would have been fitted without
/// its source; the factor of a class is the value that nine tenths of the scores lie below. Each source weighs the same, and one
/// more in every class, whose score is without bound, stands for the source that was never seen. A class has the scores of the
/// class around it, with the weight of `parent_sources`, beside its own: few sources say little. Needs nine sources.
///
/// `within` is the same quantile of what rows are off by beyond the mean of the other rows of their source with the same GPU and
/// framework, of which there are two at least; `overhead` is the spread of what measured / predicted = a + overhead / predicted
/// finds in such a group of four rows and more whose steps differ by a factor of two.
IntervalTable fit_intervals(std::span<const MeasuredError> rows);
inline constexpr double parent_sources = 16;

/// Errors with a source left out of all that is fitted, and with a GPU left out.
struct LeftOut {
  std::string name;
  std::size_t rows = 0, sources = 0;
  /// |predicted / measured - 1|, in which each source weighs the same.
  struct Error {
    double median = 0, p90 = 0;
    double coverage = 0;  ///< share of rows inside their interval, whose factor comes from the others
  };
  Error in_sample, source_out, gpu_out;
};

/// Scores rows by set: "all", "dense", "experts"; each of these two with each generation of GPUs, GPU and framework; and the
/// narrowest classes of intervals.
std::vector<LeftOut> leave_out(std::span<const MeasuredError> rows);

}  // namespace tandem::studies
