#pragma once

#include <cstdint>
#include <optional>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::sim {

/// Where stages take turns, two periods are alike only together with others.
inline constexpr std::int64_t most_periods_in_stretch = 4;

/// What is looked for in a timeline: that micro-batches pass in periods which are alike.
struct Periods {
  std::int32_t micro_batches = 1;     ///< of a period, that pass the first stage's first chunk
  std::int64_t left_out = 0;          ///< that the step has and the DAG has not
  std::int32_t second_half_from = 0;  ///< see Repeat
};

/// Finds a period of a simulated DAG that stands for those which were left out, and returns the timeline's repeat; nothing where
/// what comes before the last micro-batches had not settled yet.
///
/// Four dates are sought, one stretch of one or a few periods apart, at which all that is going on is the same: between each two
/// of them the same tasks start and end at the same times after these dates, to what makes a ten-billionth of the step over all
/// that is left out, and nothing runs that began more than a stretch before. What starts and ends next follows from what runs and
/// waits, and from how much of each flow has passed; this follows from the starts and rates of those in the air, which are the
/// same. So a step in which the last stretch happens once more is this one with the rest later by as much; by induction, any
/// number of times.
///
/// The CPU of each rank issues every task of the last stretch as much later than its like before, or sooner. Where it is sooner,
/// it gets further ahead from stretch to stretch, and nothing on the rank may have waited for it since: nothing will after any
/// number of them.
std::optional<Repeat> find_repeat(const Dag& dag, const Timeline& timeline, const Periods& periods);

}  // namespace tandem::sim
