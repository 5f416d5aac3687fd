#include "studies/validate/score.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tandem::studies {

double weighted_quantile(std::vector<WeightedValue> values, double quantile) {
  std::ranges::sort(values, {}, &WeightedValue::value);
  double total = 0;
  for (const WeightedValue& entry : values) total += entry.weight;
  double before = 0, last_middle = 0, last_value = values.front().value;
  for (const WeightedValue& entry : values) {
    const double middle = (before + entry.weight / 2) / total;
    if (middle >= quantile)
      return middle > last_middle ? last_value + (entry.value - last_value) * (quantile - last_middle) / (middle - last_middle)
                                  : entry.value;
    before += entry.weight;
    last_middle = middle;
    last_value = entry.value;
  }
  return values.back().value;
}

double huber_location(std::span<const WeightedValue> values) {
  double location = 0;
  constexpr int iterations = 100;
  for (int i = 0; i < iterations; ++i) {
    double sum = 0, weights = 0;
    for (const WeightedValue& entry : values) {
      const double off = std::abs(entry.value - location);
      const double weight = entry.weight * (off > outlier ? outlier / off : 1);
      sum += weight * entry.value;
      weights += weight;
    }
    if (weights > 0) location = sum / weights;
  }
  return location;
}

Score score_of(std::span<const ScoredError> errors) {
  std::map<std::string, double> rows_of_source;
  for (const ScoredError& row : errors) rows_of_source[row.source] += 1;
  Score score{.rows = errors.size(), .sources = rows_of_source.size()};
  if (errors.empty()) return score;
  std::vector<WeightedValue> sizes, signed_errors;
  for (const ScoredError& row : errors) {
    const double weight = 1 / rows_of_source[row.source];
    sizes.push_back({std::abs(row.error), weight});
    signed_errors.push_back({row.error, weight});
    const double share = weight / static_cast<double>(rows_of_source.size());
    score.mean += share * std::abs(row.error);
    score.coverage += row.inside ? share : 0;
  }
  score.median = weighted_quantile(sizes, 0.5);
  score.p90 = weighted_quantile(std::move(sizes), 0.9);
  score.bias = weighted_quantile(std::move(signed_errors), 0.5);
  return score;
}

}  // namespace tandem::studies
