#pragma once

#include "runtime/dag.h"

namespace tandem {

/// Roofline with the device's efficiencies:
///   launch + max(flops / (peak * efficiency), bytes / (memory bandwidth * efficiency)), all over the device's speed.
Seconds kernel_time(const Device& device, OpClass op_class, const OpCost& cost);

/// The same at full peaks and without launch cost: no real kernel is faster.
Seconds kernel_lower_bound(const Device& device, const OpCost& cost);

}  // namespace tandem
