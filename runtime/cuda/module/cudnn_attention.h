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
  /// Returns how much of the queue's scratch it uses, from the beginning.
  virtual std::size_t scratch_bytes() const = 0;
  /// The operands of the operation, each aligned to 16 bytes.
  virtual void run(const Queue& queue, std::span<const DeviceTensor> operands, float scale) const = 0;
};

/// For the calling thread's GPU; made at the first call for a shape, which may take a second and must not happen while a stream
/// is captured, and kept. Any thread may call it. Null: there is no cuDNN (see `cudnn_version`), or it has no kernel for this
/// shape and GPU.
const CudnnAttention* cudnn_attention(const FusedAttention& attention, AttentionDirection direction);

/// Such as "9.19.0"; none where cuDNN was missing when this was built, is not found now, is switched off (see CudnnLibrary), or
/// cannot use the calling thread's GPU.
std::optional<std::string> cudnn_version();

}  // namespace tandem
