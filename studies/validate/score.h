#pragma once

#include <span>
#include <string>
#include <vector>

namespace tandem::studies {

/// What scoring needs of a row whose step time was measured and predicted.
struct ScoredError {
  std::string source;
  double error = 0;     ///< predicted / measured - 1
  bool inside = false;  ///< whether the measured value lies in the predicted interval
};

/// The errors of predictions over a set of rows, in which each source counts the same: a row weighs 1 / (rows of its source in
/// the set).
struct Score {
  std::size_t rows = 0, sources = 0;
  double median = 0, mean = 0, p90 = 0;  ///< of |error|
  double bias = 0;                       ///< median of the error
  double coverage = 0;                   ///< share of rows inside their interval
};

/// Returns zeros for an empty set.
Score score_of(std::span<const ScoredError> errors);

struct WeightedValue {
  double value = 0, weight = 1;
};

/// Returns the value below which the share `quantile` of the weight lies. Each value stands at the middle of its weight, with
/// linear interpolation between values; equal weights give the usual median. `values` holds at least one.
double weighted_quantile(std::vector<WeightedValue> values, double quantile);

/// Returns Huber's location: the mean, except that values further off than `outlier` weigh less, as one that is off for a reason
/// of its own says nothing of the others. 0 for none.
double huber_location(std::span<const WeightedValue> values);
inline constexpr double outlier = 0.02;  ///< what the same configuration differs by between releases of one source

}  // namespace tandem::studies
