#pragma once

#include "runtime/dag/device.h"
#include "runtime/dag/profile.h"
#include "sim/gemm_cost.h"

namespace tandem::sim {

// How long attention takes on a device whose profile states rates of attention (`states_attention`). q queries and t keys, b
// sequences of H heads of dimensions d (queries, keys) and e (values), P pairs of a query and a key that it sees, S
// multiprocessors, F the FLOPs that `runtime/ops/attention.h` counts for a pair.
//
// Fused (flash-2, flash-3, cudnn), with the fields of `AttentionPass`:
//   tiles     = b H ceil(q / 128)              forward: one for each 128 queries; backward: for each 128 keys, and t for q
//   computed  = ceil(q / 128) 128 ceil(t / 64) 64 pairs for each head; where the mask hides some, at most P and half a square of
//               128 for each tile, the triangle beyond the diagonal
//   pair      = F(d, e) / (rate((d + e) / 2) peak) seconds for each pair on the whole device, over `causal` where the mask hides
//               some. 1 / rate times the head dimension runs in straight lines between the stated dimensions, and level beyond
//               them: products grow with the dimension, the exponentials beside them do not
//               In fp8 a pair takes less by what its products do: F / (g peak) is those of its time in bf16, with g the rate
//               of bf16 products inside a tile (GemmEfficiency::rate), and becomes that of fp8; the rest of it, exponentials
//               and what else does not hide, stays. Derived, not fitted: no attention in fp8 was
//   mean      = S pair computed b H / tiles + tile d / 128        seconds that a multiprocessor spends on a tile
//   computing = ceil(tiles / S) mean                              where every tile sees all: waves
//             = max(tiles / S mean + mean / 2, the longest tile)  else: tiles of unequal length, the longest first, end within
//                                                                 about half of one
//   time      = launch + max(computing / sustained, bytes / (memory * memory_bandwidth))
//
// Where the sequences are packed of documents, `tiles` and `computed` are sums over the documents, each with its own q, t and P,
// as in the kernels for sequences of variable length; the longest tile is that of the longest document.
//
// Unfused (2021-2022, Megatron-LM), over all q t scores of b H heads, seen or not, in the type of q. It is lowered as kernels of
// its own (runtime/ops: batched_gemm, softmax, dropout), each with its own time. Where attention goes block by block, as between
// context-parallel ranks, one kernel stands for all of a block, and its time is the sum of
//   forward    scores = q k^T (products, gemm_cost.h); mask and softmax; out = p v
//   backward   dv = p^T dout; dp = dout v^T; softmax; dq = ds k; dk = ds^T q
// Softmax moves bytes: it reads what is seen and writes all; backward it reads two and writes one. It and dropout reach `unfused`
// of the achieved bandwidth (`works_on_scores`). Kernels of Megatron-LM's fused softmax and PyTorch's dropout.
//
// Sparse (sparse_attention), by the fields of the fused kernel that the device uses: a tile is a token, whose H heads are rows in
// groups of 64, and the P / b keys that its queries chose lie scattered, so that no mask hides any:
//   mean      = S pair(d, e) P ceil(H / 64) 64 / tokens + tile (d + e) / 2 / 128
//   computing = tokens / S mean + mean / 2
// Derived, not fitted: no sparse attention was measured. Keys come from the caches.
//
// Rates, `causal` and `tile` are fitted to FlashAttention's tables in bench/accuracy. Attention alone draws less power than a
// step, so it was measured there at a higher clock than a step has: `attention_sustained` is what is left of it.

/// Returns whether the device states how fast the attention kernel that it uses is, in this type.
bool states_attention(const Device& device, DType type);

/// Returns whether the kernel is one of those between the products of unfused attention, which reach `unfused` of the achieved
/// bandwidth.
bool works_on_scores(OpKind op);

/// Returns the time of `attention` or `attention_backward` on a healthy device. Throws std::logic_error when the device does not
/// state its speed.
Seconds attention_time(const Device& device, const TimedKernel& kernel, Clock clock = Clock::sustained);

}  // namespace tandem::sim
