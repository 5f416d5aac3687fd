#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "studies/diff/result_file.h"

namespace tandem::studies {

/// Seconds of the same thing in two results; absent where a result has no such thing.
struct Difference {
  std::string name;
  std::optional<Seconds> a, b;

  /// b - a, what is absent taking no time.
  Seconds change() const { return b.value_or(0) - a.value_or(0); }
  bool is_none() const { return a == b; }
};

struct StageDifference {
  std::size_t stage = 0;
  std::vector<Difference> parts;
};

/// A stage's memory at its peak.
struct MemoryDifference {
  std::size_t stage = 0;
  std::optional<Bytes> a, b;
};

/// What changed from one result to another.
struct ResultDifference {
  ComparableResult a, b;
  std::vector<Difference> parts;        ///< of the step; their changes add up to that of the step time
  std::vector<Difference> kinds;        ///< of tasks, most changed first; empty unless both results have them
  std::vector<Difference> axes;         ///< exposed communication
  std::vector<StageDifference> stages;  ///< empty unless both results have them
  std::vector<MemoryDifference> memory;

  bool is_none() const;
};

ResultDifference difference_of(ComparableResult a, ComparableResult b);

/// The fields of `DiffReport` (viz/src/report.ts) but those of every report.
nlohmann::ordered_json to_json_object(const ResultDifference& difference);

}  // namespace tandem::studies
