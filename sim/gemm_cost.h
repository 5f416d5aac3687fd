#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/dag/device.h"
#include "runtime/dag/profile.h"
#include "runtime/ops/matrix_product.h"

namespace tandem::sim {

/// Products [m,k] [k,n] that one kernel computes: `count` of equal size.
struct GemmBatch {
  GemmSize size;
  std::int64_t count = 1;
};

struct GemmTypes {
  DType operands = DType::bf16;
  DType result = DType::bf16;
  bool accumulate = false;    ///< added to the result's old value, which is read
  bool block_scaled = false;  ///< operands have a scale for each 32 elements
};

/// A way to cut products: into tiles, and the depth k of each into equal parts.
struct GemmCut {
  GemmTile tile;
  std::int64_t split = 1;
};

// How long matrix products take on a device whose profile states tiles (`is_tiled`). With S multiprocessors and the fields of
// `GemmEfficiency`; a, b rows and columns of a tile, s parts of the depth, e bytes of an operand's element, o bytes moved for an
// element of the result (twice its size when accumulating):
//
//   tiles  = s * sum over products of ceil(m / a) ceil(n / b)
//   waves  = ceil(tiles / S)                         a multiprocessor has one tile at a time; the last wave may be part empty
//   depth  = k / s, rounded up to 128 bytes, the row of shared memory that a copy fills
//   step   = max(2 a b / (rate * peak / S),          its products, by `block_scaled` slower where operands are, or
//                (a + b) e / feed)                   the operands' way from L2 to the multiprocessor
//   drain  = a b o S / store                         all multiprocessors write their results; half of it hides behind the next
//                                                    wave's products, which the last wave does not have
//   cut    = waves depth step / sustained + (1 + (waves - 1) / 2) drain
//            + (s > 1: split + 8 s m n / store)      partial sums in fp32, written and read
//   time   = launch + max(least cut over all tiles and s in {1, 2, 4, 8, 16}, bytes / (memory * memory_bandwidth))
//
// The library (cuBLAS, DeepGEMM) is taken to choose the best. Where depths differ (weight gradients of experts) the mean over
// tiles stands for all. `sustained` stands apart because tables of single kernels are measured with the power that a step's
// hundreds of products on end do not have.
//
// Time never falls as m, n, k or the number of products grows, and is never below `kernel_lower_bound`, since rate, sustained and
// memory are at most 1. Fitted and tested in bench/accuracy. Sources: tiles and waves, NVIDIA's "Matrix Multiplication Background
// User's Guide"; the rest is derived here.

/// Returns whether the device states how its products of this type are tiled.
bool is_tiled(const Device& device, DType type);
/// Returns the type whose tiles and shares of the peak products of `type` have: bf16 of fp32 in TF32, at half its rate, as all
/// tensor cores since Ampere's have it (NVIDIA's whitepapers); else the type itself.
DType computed_like(const Device& device, DType type);
/// Returns the operations per second of all multiprocessors together in products of this type.
FlopsPerSecond product_peak(const Device& device, DType type);

/// Returns the products that a `gemm`, `grouped_gemm`, `batched_gemm` or `head_gemm` computes.
std::vector<GemmBatch> products_of(const TimedKernel& kernel);
GemmTypes types_of(const TimedKernel& kernel);

/// Says whether the clock is as high as in short runs (`sustained` = 1), or as in a training step.
enum class Clock : std::uint8_t {
  burst,
  sustained
};

/// Returns the time of one kernel on a healthy device, as above. Throws std::logic_error when it is not tiled.
Seconds gemm_time(const Device& device, std::span<const GemmBatch> products, const GemmTypes& types,
                  Clock clock = Clock::sustained);

/// Returns the time of products that are a kernel each, on a few streams (Transformer Engine's multi_stream_cublas_gemm has
/// four):
///
///   launch + sum over products of (max(cut - drain / 2, bytes / (memory * memory_bandwidth)) + on_stream)
///
/// The next stream's product hides half of the last wave's write, as the next wave hides that of others. It does not fill the
/// empty part of that wave, nor, on an H100, hide much of a launch: products of 512 rows and more take as long on four streams as
/// one after the other, smaller ones 0.9 times as long (tests/gpu/results/h100-2026-11-26/grouped.csv).
Seconds gemm_time_on_streams(const Device& device, std::span<const GemmBatch> products, const GemmTypes& types,
                             Clock clock = Clock::sustained);

/// Returns the cut that `gemm_time` takes to be the library's.
GemmCut best_cut(const Device& device, std::span<const GemmBatch> products, const GemmTypes& types,
                 Clock clock = Clock::sustained);

}  // namespace tandem::sim
