#pragma once

#include "runtime/cuda/module/device.h"

namespace tandem {

// Blocks of a launch that add to the same sums in a stated order, so that the same numbers come out in every run. `turn` counts
// from 0, in global memory. A block may only wait for one that has begun before it: blocks take their numbers by atomicAdd, as
// CUDA does not say in which order it begins them.

/// Waits until `turn` is at least so much. What was added before its end_turn is added then.
TANDEM_DEVICE void wait_for_turn(const int* turn, int least) {
#ifdef TANDEM_EMULATED
  if (*turn < least) throw std::runtime_error("a block waits for one that begins after it");
#else
  int now = 0;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
  } while (now < least);
#endif
}

/// One thread calls it, after the __syncthreads that follows the block's last addition.
TANDEM_DEVICE void end_turn(int* turn, int now) {
#ifdef TANDEM_EMULATED
  *turn = now;
#else
  __threadfence();
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(turn), "r"(now) : "memory");
#endif
}

/// Adds in the L2 cache, without waiting for the result. No other block adds to it at this time.
TANDEM_DEVICE void add_in_turn(float* sum, float value) {
#ifdef TANDEM_EMULATED
  *sum += value;
#else
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(sum), "f"(value) : "memory");
#endif
}

}  // namespace tandem
