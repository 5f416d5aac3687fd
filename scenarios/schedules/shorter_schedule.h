#pragma once

#include <cstdint>
#include <optional>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A pipeline's steady state, in which every stage does the same for one period of micro-batches after the other, with some of
/// these periods left out.
struct ShorterSchedule {
  std::int32_t micro_batches = 0;  ///< that are left, of one step
  std::int32_t period = 1;         ///< micro-batches, of all chunks
  std::int64_t left_out = 0;       ///< periods
  /// Micro-batches of a period that pass the first stage's first chunk: with two copies of the model, half of them.
  std::int32_t period_of_chunk = 1;
};

/// Returns the schedule with at least `micro_batches`, and no more than leave out a multiple of `multiple` whole periods. On
/// every stage its actions are those of the whole schedule up to some place in the steady state, and from that place on those
/// after the periods that are left out. Nothing where the whole schedule has no more, where it has no steady state that is long
/// enough for this, or whose actions differ by more than their micro-batches (packed documents).
std::optional<ShorterSchedule> shorter_schedule(const Scenario& scenario, std::int32_t micro_batches, std::int64_t multiple = 1);

}  // namespace tandem::scenarios
