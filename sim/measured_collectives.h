#pragma once

#include <functional>
#include <optional>
#include <span>

#include "runtime/dag/profile.h"

namespace tandem::sim {

/// Returns how long a collective takes by what was measured of its kind among as many members on as many machines, or nothing
/// where nothing such was measured. A node of the simulated cluster is a machine: what was measured inside one says nothing of
/// several, nor the other way round.
///
/// Of sizes between two that were measured: on the straight line between their times, as of a latency and bytes at a rate. Of
/// smaller and larger ones: as many times `modelled`, the time by the cluster's links, as the nearest took.
std::optional<Seconds> measured_time(std::span<const MeasuredCollective> measured, OpKind op, Bytes bytes, std::size_t members,
                                     std::size_t machines, const std::function<Seconds(Bytes)>& modelled);

}  // namespace tandem::sim
