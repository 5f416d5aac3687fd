#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/sweep/point.h"

namespace tandem::studies {

/// A part of a study's points, for one of several machines to simulate.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// Reads "i/n", i from 0 to n - 1 as Slurm numbers an array's tasks. Returns nothing where the text is something else.
std::optional<Shard> parse_shard(const std::string& text);

/// Returns every n-th point, so that neighbours, which tend to take equally long, go to different shards.
std::vector<PointId> points_of(const Shard& shard, std::vector<PointId> points);

}  // namespace tandem::studies
