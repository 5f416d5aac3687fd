#pragma once

#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// to = from, or to += from: as many elements, in the order in which they lie, each rounded once. An fp8 `from` has its scale.
/// Into fp32, bf16 or fp16, from these and fp8.
void convert(const Queue& queue, const DeviceTensor& from, const DeviceTensor& to, bool accumulate);

}  // namespace tandem
