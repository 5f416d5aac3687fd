#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::studies {

/// A row of the page's timeline: a rank of the DAG, on one of the stages that it stands for.
struct DrawnRow {
  RankIndex rank = 0;
  std::int32_t stage = 0;
  std::uint32_t world_rank = 0;
  std::uint32_t stands_for = 1;  ///< ranks of the stage

  bool is_mirror(const Dag& dag) const { return stage != dag.ranks[rank].pp; }
};

/// Returns the rows by stage: all ranks, or where there are more than 64 the busiest of each stage. `mirrored`: by rank of the
/// DAG, the first of the world on its mirrored stage; empty where there is none.
std::vector<DrawnRow> drawn_rows(const Dag& dag, const Timeline& timeline, const std::vector<std::uint32_t>& mirrored = {});

}  // namespace tandem::studies
