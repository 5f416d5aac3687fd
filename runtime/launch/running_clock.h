#pragma once

#include "runtime/base/units.h"

namespace tandem {

/// A clock that stands still while this process does: stopped by a signal, or on a machine that was suspended. What others sent
/// in the meantime lies unread, so a time limit that they are held to must not go on. It is to be read every so often; of a
/// longer gap between two readings it counts `longest_gap` alone.
class RunningClock {
 public:
  RunningClock(Seconds longest_gap, Seconds steady) : longest_gap_(longest_gap), last_(steady) {}

  /// `steady`: the time of a steady clock.
  Seconds read(Seconds steady) {
    const Seconds gap = steady - last_;
    last_ = steady;
    return now_ += gap < longest_gap_ ? gap : longest_gap_;
  }

 private:
  Seconds longest_gap_, last_, now_ = 0;
};

}  // namespace tandem
