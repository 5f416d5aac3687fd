#pragma once

#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// How much of a communication stream's time the same rank spent computing, too.
struct StreamOverlap {
  RankIndex rank = 0;
  Stream stream = Stream::tp;
  Seconds busy = 0;     ///< some task of the stream ran
  Seconds covered = 0;  ///< and a kernel of the rank's compute stream at the same time

  /// 0 where the stream was never busy.
  double fraction() const { return busy > 0 ? covered / busy : 0; }
};

/// By rank, then stream; of every stream that has communication.
std::vector<StreamOverlap> stream_overlaps(const Dag& dag, const Timeline& timeline);

}  // namespace tandem
