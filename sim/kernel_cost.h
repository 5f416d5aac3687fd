#pragma once

#include "runtime/dag/device.h"
#include "runtime/dag/profile.h"
#include "runtime/dag/software.h"

namespace tandem::sim {

/// The bound of a kernel of one kind: launch + max(flops / arithmetic, bytes / memory).
struct Roofline {
  Seconds launch = 0;
  FlopsPerSecond arithmetic = 0;  ///< 0: has no such arithmetic
  BytesPerSecond memory = 0;

  /// Throws std::logic_error for work of which it has no speed.
  Seconds time(const OpCost& cost) const;
  Seconds computing(const OpCost& cost) const;
  Seconds moving(const OpCost& cost) const;
};

/// Returns the device's peaks times its efficiencies, whatever its speed. Where products or attention are tiled this is what most
/// of their time goes to, not how long they take.
Roofline roofline_of(const Device& device, OpClass op_class, DType math);

/// Returns how long a kernel takes, over the device's speed: matrix products by their tiles (`gemm_cost.h`) and attention by its
/// own (`attention_cost.h`) where the device states them; everything else, and these elsewhere, by `roofline_of`, between the
/// products of unfused attention with `unfused` of the bandwidth, between tokens and experts with `permute`, casts to narrow
/// types with `cast`. A kernel that only moves memory so reaches half of the achieved bandwidth at launch * memory bytes, and
/// little of it below. Work that comes in several `kernels` (`kernels_of`) is products on streams (`gemm_time_on_streams`), or
/// that many launches. A scan is the sum of its parts, each by `roofline_of`, their products at the rate of matrix products: no
/// measured kernel says less.
Seconds kernel_time(const Device& device, const TimedKernel& kernel, std::int64_t kernels = 1);

/// Returns how many kernels a task is: the parts of a scan, and where the framework has one for each expert, as many as have
/// rows.
std::int64_t kernels_of(const Software& software, OpKind op, const OpAttributes& attributes);

/// Returns the time of what the framework runs beside a kernel (`ExtraWork`), or beside each of so many: each launched, and its
/// bytes at the bandwidth that is achieved, by casts that of casts, and by what loads single elements less. None for what is kept
/// in the narrow type: a transpose looks for no maximum.
Seconds extra_time(const Device& device, const ExtraWork& extra, const TimedKernel& kernel, std::int64_t kernels = 1);

/// Returns the time at full peaks and without launch cost, which no real kernel beats.
Seconds kernel_lower_bound(const Device& device, const OpCost& cost);

}  // namespace tandem::sim
