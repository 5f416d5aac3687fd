#pragma once

#include "runtime/base/units.h"
#include "runtime/cuda/module/gpu_memory.h"
#include "runtime/cuda/module/streams.h"

namespace tandem {

/// What a GPU does in a training step, for it to draw as much power: products in bf16 on random numbers for three quarters of the
/// time, copies for the rest. Where a step reaches the power limit, the limit sets the clocks, within a tenth of a second and for
/// all kernels alike: attention, which draws less, runs at 1,980 MHz alone on an H200 and a sixth slower in a step. So a kernel
/// that is to be timed as in a step runs between loads, and for less time than they do.
class StepLoad {
 public:
  explicit StepLoad(int multiprocessors);
  StepLoad(const StepLoad&) = delete;
  StepLoad& operator=(const StepLoad&) = delete;
  ~StepLoad();

  /// Puts so much of the load into the stream, without waiting for it. Returns how long it will take.
  Seconds put(const Queue& queue, Seconds at_least) const;
  /// Puts it into a stream of its own, beside which others run until `wait` returns.
  void put_beside(Seconds at_least);
  void wait();

 private:
  OwnedQueue queue_;
  GpuMemory numbers_, copied_;
  cudaGraphExec_t graph_ = nullptr;
  Seconds of_graph_ = 0;
};

}  // namespace tandem
