#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <numbers>
#include <source_location>
#include <type_traits>

#include "runtime/cuda/emulation/grid.h"

// The part of CUDA C++ that kernels may use, for a C++ compiler: see runtime/cuda/module/device.h.

#undef __launch_bounds__
#define __launch_bounds__(...)

using std::isinf;
using std::isnan;

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace tandem::emulation {

inline constexpr unsigned full_warp = 0xFFFFFFFFU;

template <typename Value>
using OfAllLanes = std::array<Value, warp_size>;

inline unsigned lane() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % warp_size; }

/// Every lane of `mask` calls it with its value and gets the values of all, by lane: what tensor-core and shuffle instructions
/// are made of.
template <typename Value>
OfAllLanes<Value> warp_exchange(unsigned mask, const Value& value, std::source_location place = std::source_location::current()) {
  static_assert(std::is_trivially_copyable_v<Value>);
  OfAllLanes<Value> all{};
  exchange(mask, &value, all.data(), sizeof(Value), place);
  return all;
}

template <typename Element>
Element* shared_array(const char* site, std::size_t count) {
  return static_cast<Element*>(shared_bytes_of(site, count * sizeof(Element)));
}

}  // namespace tandem::emulation

#define TANDEM_SHARED(Element, name, count) \
  static const char name##_site = 0;        \
  Element* const name = ::tandem::emulation::shared_array<Element>(&name##_site, count)
#define TANDEM_DYNAMIC_SHARED(name) \
  unsigned char* const name = static_cast<unsigned char*>(::tandem::emulation::dynamic_shared_bytes())

// CUDA's headers make an attribute of it that only its own compiler knows.
#undef __launch_bounds__
#define __launch_bounds__(...)

inline void __syncthreads(std::source_location place = std::source_location::current()) {
  tandem::emulation::wait_for_block(place);
}
inline void __syncwarp(unsigned mask = tandem::emulation::full_warp,
                       std::source_location place = std::source_location::current()) {
  tandem::emulation::warp_exchange(mask, char{0}, place);
}
inline void __threadfence() {}

template <typename Value>
Value __shfl_sync(unsigned mask, Value value, int from, int width = 32,
                  std::source_location place = std::source_location::current()) {
  const auto all = tandem::emulation::warp_exchange(mask, value, place);
  const int lane = static_cast<int>(tandem::emulation::lane());
  return all[static_cast<std::size_t>(lane / width * width + from % width)];
}
template <typename Value>
Value __shfl_xor_sync(unsigned mask, Value value, int lanes, int width = 32,
                      std::source_location place = std::source_location::current()) {
  const auto all = tandem::emulation::warp_exchange(mask, value, place);
  const int lane = static_cast<int>(tandem::emulation::lane()), other = lane ^ lanes;
  return all[static_cast<std::size_t>(other / width <= lane / width ? other : lane)];
}
template <typename Value>
Value __shfl_down_sync(unsigned mask, Value value, unsigned by, int width = 32,
                       std::source_location place = std::source_location::current()) {
  const auto all = tandem::emulation::warp_exchange(mask, value, place);
  const int lane = static_cast<int>(tandem::emulation::lane()), other = lane + static_cast<int>(by);
  return all[static_cast<std::size_t>(other / width == lane / width ? other : lane)];
}
template <typename Value>
Value __shfl_up_sync(unsigned mask, Value value, unsigned by, int width = 32,
                     std::source_location place = std::source_location::current()) {
  const auto all = tandem::emulation::warp_exchange(mask, value, place);
  const int lane = static_cast<int>(tandem::emulation::lane()), other = lane - static_cast<int>(by);
  return all[static_cast<std::size_t>(other >= lane / width * width ? other : lane)];
}
inline unsigned __ballot_sync(unsigned mask, int predicate, std::source_location place = std::source_location::current()) {
  const auto all = tandem::emulation::warp_exchange(mask, predicate, place);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < tandem::emulation::warp_size; ++lane)
    if ((mask >> lane & 1U) != 0 && all[lane] != 0) bits |= 1U << lane;
  return bits;
}
inline int __any_sync(unsigned mask, int predicate, std::source_location place = std::source_location::current()) {
  return __ballot_sync(mask, predicate, place) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, std::source_location place = std::source_location::current()) {
  return __ballot_sync(mask, predicate, place) == mask ? 1 : 0;
}

inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __ffs(int bits) { return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1; }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float cospif(float x) { return std::cos(std::numbers::pi_v<float> * x); }
inline float sinpif(float x) { return std::sin(std::numbers::pi_v<float> * x); }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }

// Atomics on integers alone: floating-point sums must come out the same in every run.
template <std::integral Value>
Value atomicAdd(Value* at, std::type_identity_t<Value> value) {
  const Value before = *at;
  *at = static_cast<Value>(before + value);
  return before;
}
template <std::integral Value>
Value atomicMax(Value* at, std::type_identity_t<Value> value) {
  const Value before = *at;
  *at = std::max(before, value);
  return before;
}
template <std::integral Value>
Value atomicMin(Value* at, std::type_identity_t<Value> value) {
  const Value before = *at;
  *at = std::min(before, value);
  return before;
}
template <std::integral Value>
Value atomicOr(Value* at, std::type_identity_t<Value> value) {
  const Value before = *at;
  *at |= value;
  return before;
}
