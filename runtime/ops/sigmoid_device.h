#pragma once

#include "runtime/cuda/module/device.h"

namespace tandem {

/// 1 / (1 + e^-x), as exact as exp_fast.
TANDEM_DEVICE float sigmoid_fast(float x) { return divide_fast(1.0F, 1.0F + exp_fast(-x)); }

}  // namespace tandem
