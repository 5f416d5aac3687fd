#pragma once

#include "runtime/base/units.h"

namespace tandem::sim {

// How long to train between two checkpoints, each of which stops the training for `stall`, when failures come after `mtbf` on
// average.

/// Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974:
///
///   sqrt(2 stall mtbf)
Seconds young_interval(Seconds stall, Seconds mtbf);

/// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, equation 37:
///
///   sqrt(2 stall mtbf) (1 + sqrt(stall / (2 mtbf)) / 3 + stall / (2 mtbf) / 9) - stall    where stall < 2 mtbf
///   mtbf                                                                                  elsewhere
Seconds daly_interval(Seconds stall, Seconds mtbf);

}  // namespace tandem::sim
