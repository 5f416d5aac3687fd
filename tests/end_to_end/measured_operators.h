#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "tests/end_to_end/step_parts.h"

namespace tandem::studies {

/// Measured times of single kernels by shape: bench/accuracy/data/operators.csv. Rows of one shape are averaged.
class MeasuredOperators {
 public:
  MeasuredOperators();

  /// What a rank's products and attention take in a step, one after the other.
  struct OfStep {
    PartTimes measured, predicted;  ///< by part: "products forward", "experts' products of weight gradients", "attention", ...
    std::set<std::string> unknown;  ///< shapes that were not measured
  };
  OfStep of_step(const Dag& dag, const Timeline& timeline, RankIndex rank) const;

 private:
  /// Operation; pass; how many, for attention heads of queries and of keys; rows and columns, of a weight's gradient in either
  /// order; depth, for attention the widths of a query and a value together.
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t>;
  static std::string text_of(const Key& key);

  std::map<Key, std::vector<Seconds>> times_;
};

}  // namespace tandem::studies
