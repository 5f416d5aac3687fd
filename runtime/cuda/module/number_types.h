#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <type_traits>

#include "runtime/base/host_device.h"

namespace tandem {

using Bf16 = __nv_bfloat16;
using F16 = __half;
using F8 = __nv_fp8_e4m3;

TANDEM_HOST_DEVICE inline float to_float(float x) { return x; }
TANDEM_HOST_DEVICE inline float to_float(Bf16 x) { return __bfloat162float(x); }
TANDEM_HOST_DEVICE inline float to_float(F16 x) { return __half2float(x); }
TANDEM_HOST_DEVICE inline float to_float(F8 x) { return static_cast<float>(x); }

/// Rounded to nearest, ties to even. F8 has no infinity: what is too large becomes its largest, 448.
template <typename Element>
TANDEM_HOST_DEVICE inline Element from_float(float x) {
  if constexpr (std::is_same_v<Element, Bf16>) {
    return __float2bfloat16_rn(x);
  } else if constexpr (std::is_same_v<Element, F16>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<Element, F8>) {
    return F8(x);
  } else {
    static_assert(std::is_same_v<Element, float>);
    return x;
  }
}

}  // namespace tandem
