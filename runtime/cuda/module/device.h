#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "runtime/cuda/module/number_types.h"

#ifdef TANDEM_EMULATED
#include "runtime/cuda/emulation/device.h"
#endif

/// What kernels are written in, so that the same source runs on a GPU and, compiled as C++, on a CPU (runtime/cuda/emulation):
///
///   threadIdx, blockIdx, blockDim, gridDim; __syncthreads, __syncwarp, __threadfence; __shfl_sync, __shfl_xor_sync,
///   __shfl_down_sync, __shfl_up_sync; __ballot_sync, __any_sync, __all_sync; atomicAdd, atomicMax, atomicMin, atomicOr on
///   integers;
///   __popc, __ffs, __clz, __float_as_int and the like; __launch_bounds__; expf, logf, sqrtf, rsqrtf, cospif, sinpif, tanhf,
///   fabsf, fmaxf, fminf, isinf of C
///
/// and what this header adds. Anything else, such as tensor-core instructions, is a function with two bodies: PTX, and for
/// TANDEM_EMULATED one built on emulation::warp_exchange.
///
/// Shared memory is declared by macro, as in emulation it belongs to a block and not to a thread:
///   TANDEM_SHARED(Element, name, count)   of a size known at compile time, aligned to 16 bytes
///   TANDEM_DYNAMIC_SHARED(name)           unsigned char*, as much as Grid::shared_bytes, aligned to 16 bytes
#ifdef TANDEM_EMULATED
#define TANDEM_DEVICE inline
#else
#define TANDEM_DEVICE __device__ __forceinline__
#define TANDEM_SHARED(Element, name, count) __shared__ __align__(16) Element name[count]
#define TANDEM_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

namespace tandem {

inline constexpr unsigned every_lane = 0xFFFFFFFFU;
inline constexpr int lanes_of_warp = 32;

template <typename Number>
TANDEM_DEVICE Number smaller(Number a, Number b) {
  return b < a ? b : a;
}
template <typename Number>
TANDEM_DEVICE Number larger(Number a, Number b) {
  return a < b ? b : a;
}

/// Returns e^x with a relative error below 2e-7 (1 + |x|), and zero where the result is no normal number.
TANDEM_DEVICE float exp_fast(float x) {
#ifdef TANDEM_EMULATED
  return expf(x);
#else
  constexpr float log2_e = 1.44269504F;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * log2_e));
  return result;
#endif
}

/// Returns a / b within 2 units in the last place, and zero where b exceeds 2^126.
TANDEM_DEVICE float divide_fast(float a, float b) {
#ifdef TANDEM_EMULATED
  return a / b;
#else
  return __fdividef(a, b);
#endif
}

/// The widest load or store of a thread.
inline constexpr int widest_access = 16;

#ifndef TANDEM_EMULATED
/// What a thread loads or stores at once of so many bytes.
template <int bytes>
using WordOf = std::conditional_t<
    bytes >= 16, uint4,
    std::conditional_t<bytes == 8, uint2,
                       std::conditional_t<bytes == 4, unsigned, std::conditional_t<bytes == 2, ushort1, uchar1> > > >;
#endif

/// Moves `bytes` (1, 2, 4, 8, or a multiple of 16) between addresses aligned to them, or to 16.
template <int bytes>
TANDEM_DEVICE void copy_aligned(void* to, const void* from) {
#ifdef TANDEM_EMULATED
  constexpr int word_bytes = bytes < widest_access ? bytes : widest_access;
  if (std::bit_cast<std::uintptr_t>(to) % word_bytes != 0 || std::bit_cast<std::uintptr_t>(from) % word_bytes != 0)
    throw std::runtime_error("misaligned address");
  std::memmove(to, from, bytes);
#else
  using Word = WordOf<bytes>;
  constexpr int words = bytes / static_cast<int>(sizeof(Word));
  static_assert(words * sizeof(Word) == bytes);
#pragma unroll
  for (int i = 0; i < words; ++i) static_cast<Word*>(to)[i] = static_cast<const Word*>(from)[i];
#endif
}

/// Likewise, from a thread's own variables to global memory. Where numbers were made one by one, nvcc takes the word of a plain
/// store apart into them again, and often stores each alone.
template <int bytes>
TANDEM_DEVICE void store_aligned(void* global, const void* from) {
#ifdef TANDEM_EMULATED
  if (emulation::is_shared(global)) throw std::runtime_error("shared memory where global memory is meant");
#else
  if constexpr (bytes >= 8) {
    using Word = WordOf<bytes>;
#pragma unroll
    for (int i = 0; i < bytes / static_cast<int>(sizeof(Word)); ++i)
      __stwb(static_cast<Word*>(global) + i, static_cast<const Word*>(from)[i]);
    return;
  }
#endif
  copy_aligned<bytes>(global, from);
}

/// Loads `count` consecutive elements, aligned to min(16 bytes, all of them), as fp32.
template <int count, typename Element>
TANDEM_DEVICE void load(const Element* from, float (&values)[count]) {
  alignas(widest_access) Element raw[count];
  copy_aligned<count* static_cast<int>(sizeof(Element))>(raw, from);
#pragma unroll
  for (int i = 0; i < count; ++i) values[i] = to_float(raw[i]);
}

/// Rounds and stores to global memory.
template <int count, typename Element>
TANDEM_DEVICE void store(Element* to, const float (&values)[count]) {
  alignas(widest_access) Element raw[count];
#pragma unroll
  for (int i = 0; i < count; ++i) raw[i] = from_float<Element>(values[i]);
  store_aligned<count* static_cast<int>(sizeof(Element))>(to, raw);
}

TANDEM_DEVICE float warp_sum(float value) {
  for (int lanes = lanes_of_warp / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(every_lane, value, lanes);
  return value;
}

TANDEM_DEVICE float warp_max(float value) {
  for (int lanes = lanes_of_warp / 2; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(every_lane, value, lanes));
  return value;
}

/// Sums each value over a block of whole warps, in one dimension and always in the same order. All threads call it and get the
/// sums.
template <int count>
TANDEM_DEVICE void block_sums(float (&values)[count]) {
  using OfWarps = float[lanes_of_warp];
  TANDEM_SHARED(OfWarps, sums, count);
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp, lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const int warps = static_cast<int>(blockDim.x) / lanes_of_warp;
  __syncthreads();  // an earlier call's results may still be read
  for (int i = 0; i < count; ++i) {
    const float sum = warp_sum(values[i]);
    if (lane == 0) sums[i][warp] = sum;
  }
  __syncthreads();
  for (int i = 0; i < count; ++i) values[i] = warp_sum(lane < warps ? sums[i][lane] : 0.0F);
}

TANDEM_DEVICE float block_sum(float value) {
  float values[1] = {value};
  block_sums(values);
  return values[0];
}

/// Likewise returns the largest value.
TANDEM_DEVICE float block_max(float value) {
  TANDEM_SHARED(float, of_warps, lanes_of_warp);
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp, lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const int warps = static_cast<int>(blockDim.x) / lanes_of_warp;
  value = warp_max(value);
  __syncthreads();
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  return warp_max(of_warps[lane < warps ? lane : 0]);
}

/// Copies 16 bytes from global to shared memory without waiting (cp.async); both addresses aligned to 16. A copy counts to the
/// group that the thread closes next with copy_async_commit; after copy_async_wait<n> all but its n latest groups have arrived,
/// for itself: __syncthreads makes them seen by others.
TANDEM_DEVICE void copy_async(void* shared, const void* global) {
#ifdef TANDEM_EMULATED
  if (std::bit_cast<std::uintptr_t>(shared) % 16 != 0 || std::bit_cast<std::uintptr_t>(global) % 16 != 0)
    throw std::runtime_error("misaligned address");
  emulation::defer_copy(shared, global, 16);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
#endif
}

TANDEM_DEVICE void copy_async_commit() {
#ifdef TANDEM_EMULATED
  emulation::close_group_of_copies();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int groups_in_flight>
TANDEM_DEVICE void copy_async_wait() {
#ifdef TANDEM_EMULATED
  emulation::wait_for_copies(groups_in_flight);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(groups_in_flight) : "memory");
#endif
}

}  // namespace tandem
