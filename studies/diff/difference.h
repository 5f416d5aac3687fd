#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "studies/step/step_result.h"

namespace tandem::studies {

/// A result and the name of its file. What it does not know is 0 or empty: results of older versions have no `stage_times` and no
/// `kinds`.
struct NamedResult {
  std::string name;
  StepResult step;
};

/// Seconds of the same thing in two results; absent where a result has no such thing.
struct Difference {
  std::string name;
  std::optional<Seconds> a, b;

  /// Returns b - a. What is absent takes no time.
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
  bool is_none() const { return a == b; }
};

/// What changed from one result to another.
struct ResultDifference {
  NamedResult a, b;
  std::vector<Difference> parts;        ///< of the step; their changes add up to that of the step time
  std::vector<Difference> kinds;        ///< of tasks, most changed first; empty unless both results have them
  std::vector<Difference> axes;         ///< exposed communication
  std::vector<StageDifference> stages;  ///< empty unless both results have them
  std::vector<MemoryDifference> memory;

  bool is_none() const;
};

/// Matches the parts of two results by name.
ResultDifference difference_of(NamedResult a, NamedResult b);

/// Returns the fields of `DiffReport` (viz/src/report.ts), without those that every report has.
nlohmann::ordered_json to_json_object(const ResultDifference& difference);

}  // namespace tandem::studies
