#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/collective_ladder.h"

namespace tandem {

/// Returns collectives among 2, 4 and 8 ranks of 4 KiB to 16 MiB, the small ones first, so that a short budget has some of every
/// kind.
std::vector<MeasuredCollective> collectives_worth_measuring_on_host();

using CollectiveProgress = std::function<void(const MeasuredCollective& next)>;

/// Times the host backend's collectives, each member on a thread of its own, by executing ladders of one collective each, equal
/// parts of about `budget` in all. At least the first is measured; those that no time is left for keep a timing without samples.
void time_on_host(std::span<MeasuredCollective> collectives, Seconds budget, const CollectiveProgress& progress = {});

}  // namespace tandem
