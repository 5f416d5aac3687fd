#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "studies/validate/score.h"
#include "studies/validate/validated_row.h"

namespace tandem::studies {

/// A row whose peak was measured and predicted.
struct MemoryRow {
  std::string id;
  MemoryFigure figure = MemoryFigure::tensors;
  Bytes measured = 0;
  Bytes predicted = 0;  ///< the same figure
  double error() const { return static_cast<double>(predicted) / static_cast<double>(measured) - 1; }
};

/// Counts of rows by what happened (ran, or ran out of memory) and what was predicted (fits, or exceeds the memory).
struct FitsTable {
  std::size_t ran_fits = 0;
  std::size_t ran_exceeds = 0;  ///< predicted not to fit, though it did
  std::size_t oom_fits = 0;     ///< predicted to fit, though it did not
  std::size_t oom_exceeds = 0;
};

struct MemoryScore {
  std::vector<MemoryRow> rows;
  Score score;                                       ///< each source weighing the same; `coverage` says nothing here
  std::array<Score, memory_figure_count> by_figure;  ///< the same of each figure
  FitsTable fits;
};

MemoryScore memory_score_of(std::span<const ValidatedRow> rows);

}  // namespace tandem::studies
