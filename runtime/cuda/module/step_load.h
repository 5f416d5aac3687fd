#pragma once

#include <optional>

#include "runtime/base/units.h"
#include "runtime/cuda/module/gpu_memory.h"
#include "runtime/cuda/module/streams.h"

namespace tandem {

/// How long what reaches the power limit must run for its mean speed to be that of hours: an H100 holds its mean power by clocks
/// that fall by a tenth to a fifth once a second, for 0.2 to 0.4 s (tests/gpu/results/h100-2026-11-26). 0 where power sets no
/// clocks.
Seconds time_of_mean_clocks();

/// Large products in bf16 on random numbers, for a GPU to draw as much power as in a training step. Where a step reaches the
/// power limit, the limit sets the clocks, within a tenth of a second and for all kernels alike: attention, which draws less,
/// runs a quarter faster alone than in a step. So a kernel that is to be timed as in a step runs between loads, and for less time
/// than they do. What it takes beside a load says more than what it takes, as clocks fall and rise under both. On an H100
/// products and attention take as long between products as between steps of Llama 3 8B's shape, to within 2.5 %.
class StepLoad {
 public:
  explicit StepLoad(int multiprocessors);
  StepLoad(const StepLoad&) = delete;
  StepLoad& operator=(const StepLoad&) = delete;
  ~StepLoad();

  /// Puts so much of the load into the stream, without waiting for it. Returns how long it will take.
  Seconds put(const Queue& queue, Seconds at_least) const;
  /// Puts the least of it, which tells the clock that `mean` compares with, into the stream.
  void put_one(const Queue& queue) const;
  /// Returns how long `put_one` takes in the mean of `time_of_mean_clocks`. The first call runs the load for a while longer.
  Seconds mean();
  /// Puts it into a stream of its own, beside which others run until `wait` returns.
  void put_beside(Seconds at_least);
  void wait();

 private:
  OwnedQueue queue_;
  GpuMemory numbers_;
  cudaGraphExec_t graph_ = nullptr;
  Seconds of_graph_ = 0;
  std::optional<Seconds> mean_;
};

}  // namespace tandem
