#pragma once

#include "runtime/cuda/module/cudnn_attention.h"

namespace tandem {

// What the operations attention and attention_backward ask before they use kernels of their own.

/// While one lives, operations of this thread use their own kernels.
class WithoutLibraries {
 public:
  WithoutLibraries();
  WithoutLibraries(const WithoutLibraries&) = delete;
  ~WithoutLibraries();
};

/// Runs attention by a library's kernel. Returns false, with nothing done, where there is none for these operands.
bool run_library_attention(Queue& queue, std::span<const DeviceTensor> operands, const AttentionAttributes& attributes,
                           AttentionDirection direction);

/// Returns how much of the queue's scratch the library's kernel uses, 0 where there is none. Compiles the kernel.
std::size_t library_attention_scratch(std::span<const OperandType> operands, const AttentionAttributes& attributes,
                                      AttentionDirection direction);

}  // namespace tandem
