#pragma once

#include <functional>

#include "runtime/contents/initial_contents.h"
#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// Writes initial contents into the GPU's memory, by kernels in one queue; into fp8 as if its scale were 1.
class GpuContentsWriter final : public ContentsWriter {
 public:
  /// `tensor` finds a base buffer; it has no data where the buffer's rank runs elsewhere.
  GpuContentsWriter(Queue& queue, std::function<DeviceTensor(BufferId)> tensor) : queue_(queue), tensor_(std::move(tensor)) {}

  void write(const Stretch& out, float value) override;
  void write(const Stretch& out, const ShardValues& values) override;
  void write(const Stretch& out, const InputValues& values) override;
  void copy(const Stretch& from, const Stretch& to) override;

 private:
  Queue& queue_;
  std::function<DeviceTensor(BufferId)> tensor_;
};

}  // namespace tandem
