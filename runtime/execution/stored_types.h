#pragma once

#include "runtime/dag/dag.h"

namespace tandem {

/// Returns the DAG as GPUs execute it. They multiply, and keep, fp8 (e4m3) with one scale for a tensor alone. Every other tensor
/// in fp8 or fp4 is kept in bf16, as the numbers that its elements and their scales stand for:
///
/// - of recipes that scale blocks (blockwise, mxfp8, nvfp4). In fp8 those are exact, as scales are powers of two; in fp4 they are
///   rounded once more, by 2^-9 of themselves at most, since the tensor's scale is any number;
/// - attention's operands (`training.fp8_attention`);
/// - weights that are kept and gathered in fp8 or fp4 (`training.param_gather`): in bf16 until they are first read, and rounded
/// then.
///
/// Casts round as they do on a host. Products of such tensors are bf16's, with sums in fp32, and take the time of those; buffers
/// and what is sent have the bytes of bf16.
Dag stored_on_gpus(Dag dag);

}  // namespace tandem
