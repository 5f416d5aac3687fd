#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Dates are sums, and those of what happens at once are apart by their rounding: by less than this.
inline constexpr Seconds instant = 1e-10;

/// Returns a number that is the same for dates of one instant. Many dates are whole numbers of nanoseconds, which lie in the
/// middle of an instant.
inline double instant_of(Seconds date) {
  static_assert(1 / instant == 1e10);
  return std::round(date * (1 / instant));
}

/// A stretch of time, [from, to), that happens `times` more, each time right after the one before: what starts in it stands for
/// as many tasks again, and all that comes later comes later by what is added.
struct Repeat {
  Seconds from = 0, to = 0;
  std::int64_t times = 0;
  std::int32_t micro_batches = 1;     ///< of the stretch, that pass the first stage's first chunk
  Seconds before = 0;                 ///< in [before, from) the same happened as in the stretch
  std::int32_t second_half_from = 0;  ///< micro-batches from this one on pass the model's other copy, as many; 0: there is none

  Seconds length() const { return to - from; }
  Seconds added() const { return static_cast<double>(times) * length(); }
  /// Returns when what is at this date happens for the `time`-th time again.
  Seconds again_at(Seconds at, std::int64_t time) const { return at + static_cast<double>(time) * length(); }
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
  /// Returns when the task starts, or ends, when the stretch happens for the `time`-th time again.
  Seconds start_of(TaskId id, std::int64_t time) const { return repeat.again_at(start[id], time); }
  Seconds end_of(TaskId id, std::int64_t time) const { return repeat.again_at(end[id], time); }
  /// The first and the last of the times at which the task happens: 0 before the stretch, all of them in it, the last after it.
  std::pair<std::int64_t, std::int64_t> times_of(TaskId id) const {
    return {start[id] < repeat.to ? 0 : repeat.times, start[id] < repeat.from ? 0 : repeat.times};
  }
  /// Returns how much time of the step there is in [from, to), with what repeats it.
  Seconds length(Seconds from, Seconds to) const {
    const Seconds repeated = std::max(0.0, std::min(to, repeat.to) - std::max(from, repeat.from));
    return to - from + (repeat.times > 0 ? static_cast<double>(repeat.times) * repeated : 0);
  }
  /// Returns when in the step that was which the timeline has at this date, the first time where it happens several times.
  Seconds in_step(Seconds at) const { return repeat.times > 0 && at >= repeat.to ? at + repeat.added() : at; }
};

}  // namespace tandem
