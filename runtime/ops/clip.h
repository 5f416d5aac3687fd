#pragma once

#include <cmath>

#include "runtime/base/host_device.h"

namespace tandem {

/// What gradients of the squared norm `norm_square` are multiplied by, so that their norm is at most `clip_norm`; 0: no limit.
TANDEM_HOST_DEVICE inline float clip_factor(float norm_square, float clip_norm) {
  if (clip_norm <= 0) return 1.0F;
  const float factor = clip_norm / std::sqrt(norm_square);
  return factor > 1.0F ? 1.0F : factor;  // a NaN norm must not pass for an unclipped one
}

}  // namespace tandem
