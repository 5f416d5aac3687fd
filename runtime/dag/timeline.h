#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Returns a number that is the same for dates of one instant, to within a tenth of a nanosecond: dates are sums, and what
/// happens at once is apart by their rounding. Many are whole numbers of nanoseconds, which lie in the middle of an instant.
inline double instant_of(Seconds date) {
  constexpr double instants_per_second = 1e10;
  return std::round(date * instants_per_second);
}

/// A stretch of time, [from, to), that happens `times` more, each time right after the one before: what starts in it stands for
/// as many tasks again, and all that comes later comes later by what is added.
struct Repeat {
  Seconds from = 0, to = 0;
  std::int64_t times = 0;
  std::int32_t micro_batches = 1;  ///< of the stretch, that pass the first stage's first chunk

  Seconds added() const { return static_cast<double>(times) * (to - from); }
  bool holds(Seconds at) const { return from <= at && at < to; }
};

/// Says when each task of a DAG ran, in seconds since the step began. A member of a collective starts when all members were
/// ready.
struct Timeline {
  std::vector<Seconds> start;
  std::vector<Seconds> end;
  Repeat repeat = {};

  Seconds duration(TaskId id) const { return end[id] - start[id]; }
  Seconds last_end() const { return end.empty() ? 0 : *std::max_element(end.begin(), end.end()); }
  Seconds makespan() const { return last_end() + repeat.added(); }
  /// Returns how many tasks of the step the task stands for: itself, and what repeats it.
  double times(TaskId id) const {
    return repeat.times > 0 && repeat.holds(start[id]) ? 1.0 + static_cast<double>(repeat.times) : 1;
  }
  /// Returns how much time of the step there is in [begin, end), with what repeats it.
  Seconds length(Seconds begin, Seconds end) const {
    const Seconds repeated = std::max(0.0, std::min(end, repeat.to) - std::max(begin, repeat.from));
    return end - begin + (repeat.times > 0 ? static_cast<double>(repeat.times) * repeated : 0);
  }
  /// Returns when in the step that was which the timeline has at this date, the first time where it happens several times.
  Seconds in_step(Seconds at) const { return repeat.times > 0 && at >= repeat.to ? at + repeat.added() : at; }
};

}  // namespace tandem
