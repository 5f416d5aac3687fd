#pragma once

#include "runtime/cuda/module/cudnn_attention.h"

namespace tandem {

// What the operations attention and attention_backward ask before they use kernels of their own.

/// Runs it by a library's kernel. False: there is none for these operands, and nothing was done.
bool run_library_attention(Queue& queue, std::span<const DeviceTensor> operands, const AttentionAttributes& attributes,
                           AttentionDirection direction);

/// Of the queue's scratch; 0 where there is none. Compiles the kernel.
std::size_t library_attention_scratch(std::span<const OperandType> operands, const AttentionAttributes& attributes,
                                      AttentionDirection direction);

}  // namespace tandem
