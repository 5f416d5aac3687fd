#pragma once

#include "studies/step/step_result.h"

namespace tandem::studies {

/// Between which times a step would be measured to take, in nine cases of ten.
struct Interval {
  Seconds low = 0, high = 0;
};

/// Nine of ten draws from a normal distribution lie within this many standard deviations of its mean.
inline constexpr double nine_in_ten = 1.645;

/// Returns the interval that follows from the spread of what was fitted. With f for a part's share of the step time and s for the
/// relative error of what predicts the part,
///
///   error^2 = sum over parts of (f s)^2 + s_framework^2        errors of different parts have nothing to do with each other
///   low, high = step time * exp(-+ nine_in_ten error)
///
///   part                    s      from
///   matrix products         0.05   bench/accuracy/kernels.csv, 90th percentile over 1.645
///   attention               0.04   likewise
///   other kernels           0.10   assumed: bytes are counted, what a kernel achieves of the bandwidth is one number for all
///   exposed communication   0.20   bench/accuracy/collectives.csv, medians below and above 1 MiB over 0.67
///   waiting (bubble)        as the kernels of the ranks that are waited for
///   framework               0.06   what published runs differ by beyond these, bench/accuracy/runs.scored.csv;
///                                  0.12 with experts, whose load and dispatcher papers rarely print
///
/// The interval takes the scenario to be that of the run: give fields that are unknown several values, as `tandem validate` does.
Interval step_interval(const StepResult& result);

}  // namespace tandem::studies
