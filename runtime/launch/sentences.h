#pragma once

#include <chrono>
#include <string>

#include "runtime/launch/control_plane.h"

namespace tandem {

/// Returns the steady clock's time.
Seconds now_in_seconds();

/// Converts to what Asio's timers take; never negative.
std::chrono::nanoseconds duration(Seconds seconds);

/// Returns the gap between two looks at the others that tells a busy machine from a process that was stopped, see RunningClock.
Seconds longest_gap(const ControlOptions& options);

/// "at task 'qkv' (12)", or that it has not come to its first.
std::string task_text(const ControlOptions& options, const ProgressReport& report);

/// "30 s", without digits that say nothing.
std::string seconds_text(Seconds seconds);

}  // namespace tandem
