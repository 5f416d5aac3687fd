#pragma once

#include <array>
#include <vector>

#include "runtime/analysis/time_parts.h"
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

/// Says for how much of the time in which a rank communicated it computed, too: the mean over all ranks of the world and the
/// steps of the DAG. What is not covered need not be exposed (time_parts.h): an idle rank may wait for something else meanwhile.
struct CommunicationOverlap {
  struct Times {
    Seconds busy = 0;     ///< some communication ran
    Seconds covered = 0;  ///< and a kernel of the compute stream at the same time
    /// The part that kernels hide; not a number where nothing was communicated.
    double hidden() const { return covered / busy; }
  };
  std::array<Times, axis_count> by_axis{};
  Times all;  ///< with communication of any axis; less than their sum where several ran at once

  const Times& on(Axis axis) const { return by_axis[static_cast<std::size_t>(axis)]; }
};

CommunicationOverlap communication_overlap(const Dag& dag, const Timeline& timeline);

}  // namespace tandem
