#pragma once

#include <vector>

#include "runtime/base/units.h"

namespace tandem::studies {

/// A kernel that communication may run beside.
struct SlowedKernel {
  Seconds alone = 0;
  double loss = 0;  ///< share of its rate that it loses meanwhile, below 1
};

/// Returns by how much these kernels, one after the other, and the waits between them, which last `waits` at least, take longer
/// where communication runs for `communicating` meanwhile: at least, wherever it runs.
///
/// A second of communication beside a kernel of loss f costs f seconds, and the kernel lasts alone / (1 - f) where it runs beside
/// all of it; a second in a wait that would not be there otherwise costs a second, in one that is there anyway none. The least of
/// it is where it costs least first.
Seconds least_loss(std::vector<SlowedKernel> kernels, Seconds waits, Seconds communicating);

}  // namespace tandem::studies
