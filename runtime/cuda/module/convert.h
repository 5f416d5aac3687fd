#pragma once

#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// y = factor * x, of equally many elements in any floating-point types; y may be x. To fp8 the scale is chosen anew, as in
/// runtime/ops/cast.cu, for which x is read twice. Needs convert_scratch_bytes of scratch when y is fp8.
void convert(const char* name, Queue& queue, float factor, const DeviceTensor& x, const DeviceTensor& y);

std::size_t convert_scratch_bytes(DType to);

}  // namespace tandem
