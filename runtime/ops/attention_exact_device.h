#pragma once

#include "runtime/ops/attention_device.h"

namespace tandem {

// Attention with every product in fp32, for operands in fp32 and those that the tensor cores' kernels do not take. Simple, and
// slow for long sequences: a warp goes over all the keys that one query sees, or over the queries that see one key.

void attention_exact(const Queue& queue, const PackedAttentionShape& shape, const DeviceTensor& q, const DeviceTensor& k,
                     const DeviceTensor& v, const DeviceTensor& out, const DeviceTensor& lse);

/// `delta` has rowsum(dout * out) by query, as lse lies.
void attention_backward_exact(const Queue& queue, const PackedAttentionShape& shape, const DeviceTensor& q, const DeviceTensor& k,
                              const DeviceTensor& v, const DeviceTensor& lse, const DeviceTensor& dout, const float* delta,
                              const DeviceTensor& dq, const DeviceTensor& dk, const DeviceTensor& dv);

}  // namespace tandem
