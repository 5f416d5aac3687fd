#pragma once

#include "runtime/dag.h"

namespace tandem {

/// What bounds a kernel of one kind: launch + max(flops / arithmetic, bytes / memory).
struct Roofline {
  Seconds launch = 0;
  FlopsPerSecond arithmetic = 0;  ///< 0: has no such arithmetic
  BytesPerSecond memory = 0;

  /// Throws std::logic_error for work of which it has no speed.
  Seconds time(const OpCost& cost) const;
  Seconds computing(const OpCost& cost) const;
  Seconds moving(const OpCost& cost) const;
};

/// The device's peaks times its efficiencies, whatever its speed.
Roofline roofline_of(const Device& device, OpClass op_class, DType math);

/// Roofline with the device's efficiencies, over the device's speed.
Seconds kernel_time(const Device& device, OpClass op_class, const OpCost& cost);

/// The same at full peaks and without launch cost: no real kernel is faster.
Seconds kernel_lower_bound(const Device& device, const OpCost& cost);

}  // namespace tandem
