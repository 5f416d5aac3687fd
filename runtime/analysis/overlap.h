#pragma once

#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// Says for how much of a communication stream's time the same rank was computing, too.
struct StreamOverlap {
  RankIndex rank = 0;
  Stream stream = Stream::tp;
  Seconds busy = 0;     ///< some task of the stream ran
  Seconds covered = 0;  ///< and a kernel of the rank's compute stream at the same time

  /// 0 where the stream was never busy.
  double fraction() const { return busy > 0 ? covered / busy : 0; }
};

/// Returns the overlap of every stream that has communication, by rank, then stream.
std::vector<StreamOverlap> stream_overlaps(const Dag& dag, const Timeline& timeline);

}  // namespace tandem
