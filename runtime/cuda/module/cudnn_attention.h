#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "runtime/cuda/fused_attention.h"
#include "runtime/cuda/module/kernel.h"

namespace tandem {

enum class AttentionDirection {
  forward,
  backward
};

/// cuDNN's fused attention or its backward, of one shape on one GPU, compiled: the operation of that name, but that the backward
/// adds dq up in another order in every run (in fp32, rounded once).
class CudnnAttention {
 public:
  virtual ~CudnnAttention() = default;
  /// Returns how much of the queue's scratch `run` uses, from the beginning.
  virtual std::size_t scratch_bytes() const = 0;
  /// Runs on the operands of the operation, each aligned to 16 bytes.
  virtual void run(const Queue& queue, std::span<const DeviceTensor> operands, float scale) const = 0;
};

/// Returns the compiled attention for the calling thread's GPU; null where there is no cuDNN (see `cudnn_version`), or it has no
/// kernel for this shape and GPU. The first call for a shape compiles it, which may take a second and must not happen while a
/// stream is captured; later calls find it. Any thread may call this.
const CudnnAttention* cudnn_attention(const FusedAttention& attention, AttentionDirection direction);

/// Returns cuDNN's version, such as "9.19.0"; nothing where cuDNN was missing when this was built, is not found now, is switched
/// off (see CudnnLibrary), or cannot use the calling thread's GPU.
std::optional<std::string> cudnn_version();

}  // namespace tandem
