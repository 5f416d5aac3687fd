#pragma once

#include "runtime/base/units.h"
#include "runtime/cuda/module/gpu_memory.h"
#include "runtime/cuda/module/streams.h"

namespace tandem {

/// Large products in bf16 on random numbers, for a GPU to draw as much power as in a training step. Where a step reaches the
/// power limit, the limit sets the clocks, within a tenth of a second and for all kernels alike: attention, which draws less,
/// runs a quarter faster alone than in a step. So a kernel that is to be timed as in a step runs between loads, and for less time
/// than they do. On an H200 products on end ran at 1,460 MHz of 1,980; those of a step of Llama 3 8B's shape were 1.5 % faster.
/// With copies in a quarter of the time, kernels were 6 to 9 % faster than in the step (tests/gpu/results).
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
  GpuMemory numbers_;
  cudaGraphExec_t graph_ = nullptr;
  Seconds of_graph_ = 0;
};

}  // namespace tandem
