#pragma once

#include <cstdint>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/documents_device.h"
#include "runtime/ops/ssd_sizes.h"

namespace tandem {

// What the forward and the backward of Mamba-2's scan share on a GPU: the states before each chunk. A block takes one chunk of
// one head of one sequence, numbered (b heads + h) chunks + c; products are summed by plain arithmetic, not on tensor cores.

inline constexpr int threads_of_chunk = 128;

/// What the kernels leave each other in scratch, all in fp32.
struct SsdScratch {
  float *dt = nullptr, *sums = nullptr;  ///< [b, heads, positions]
  float* states = nullptr;               ///< [b, heads, chunks, P, N]: before each chunk

  static std::size_t elements(const SsdSizes& n) {
    return static_cast<std::size_t>(2 * n.batch * n.heads * n.positions + n.batch * n.heads * n.chunks() * n.head_dim * n.state);
  }
  SsdScratch(const SsdSizes& n, float* memory)
      : dt(memory), sums(dt + n.batch * n.heads * n.positions), states(sums + n.batch * n.heads * n.positions) {}
};

template <typename Element>
struct SsdOperands {
  SsdSizes n;
  const Element *mixed, *projected, *parameters;
  SsdScratch scratch;

  TANDEM_DEVICE float a(std::int64_t h) const { return -expf(to_float(parameters[n.a_log(h)])); }
  TANDEM_DEVICE float raw_dt(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return to_float(projected[n.dt(t, b, h)]) + to_float(parameters[n.dt_bias(h)]);
  }
};

/// The chunk that a block takes.
struct SsdPlace {
  std::int64_t b, h, c, first, count;
  std::int64_t in_sequence;  ///< of the chunk's first position in dt and sums
  std::int64_t in_states;    ///< of the chunk in states
  TokenOrder order;

  /// What of token u reaches token t of the chunk, by its sum, or what of the state before the chunk does: nothing where another
  /// document begins between them.
  TANDEM_DEVICE float decay(const float* sums, std::int64_t t, std::int64_t u) const {
    return order.reaches_back(b, first + t, t - u) ? expf(sums[t] - sums[u]) : 0.0F;
  }
  TANDEM_DEVICE float decay_from_start(const float* sums, std::int64_t t) const {
    return order.reaches_back(b, first + t, t + 1) ? expf(sums[t]) : 0.0F;
  }

  TANDEM_DEVICE SsdPlace(const SsdSizes& n, std::int64_t block) {
    const std::int64_t chunks = n.chunks(), of_head = block / chunks;
    c = block % chunks;
    h = of_head % n.heads;
    b = of_head / n.heads;
    first = c * n.chunk;
    count = n.chunk_end(c) - first;
    in_sequence = of_head * n.positions + first;
    in_states = block * n.head_dim * n.state;
    order = n.order;
  }
};

template <typename Element>
__global__ void ssd_sums_kernel(SsdOperands<Element> o) {
  const SsdPlace place(o.n, blockIdx.x);
  for (std::int64_t i = threadIdx.x; i < place.count; i += blockDim.x) {
    const float raw = o.raw_dt(place.first + i, place.b, place.h);
    o.scratch.dt[place.in_sequence + i] = raw > 20 ? raw : log1pf(expf(raw));
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const float a = o.a(place.h);
  float sum = 0;
  for (std::int64_t i = 0; i < place.count; ++i)
    o.scratch.sums[place.in_sequence + i] = sum += a * o.scratch.dt[place.in_sequence + i];
}

/// What each chunk adds to the state after it.
template <typename Element>
__global__ void ssd_chunk_states_kernel(SsdOperands<Element> o) {
  const SsdPlace place(o.n, blockIdx.x);
  const float *const dt = o.scratch.dt + place.in_sequence, *const sums = o.scratch.sums + place.in_sequence;
  for (std::int64_t i = threadIdx.x; i < o.n.head_dim * o.n.state; i += blockDim.x) {
    const std::int64_t p = i / o.n.state, k = i % o.n.state;
    float sum = 0;
    for (std::int64_t u = 0; u < place.count; ++u)
      sum += to_float(o.mixed[o.n.x(place.first + u, place.b, place.h) + p]) *
             to_float(o.mixed[o.n.b_of(place.first + u, place.b, place.h) + k]) * (place.decay(sums, place.count - 1, u) * dt[u]);
    o.scratch.states[place.in_states + i] = sum;
  }
}

/// Turns what each chunk adds into the state before it.
template <typename Element>
__global__ void ssd_pass_states_kernel(SsdOperands<Element> o) {
  const std::int64_t elements = o.n.head_dim * o.n.state, of_head = blockIdx.x;
  const std::int64_t i = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  float state = 0;
  for (std::int64_t c = 0; c < o.n.chunks(); ++c) {
    float& here = o.scratch.states[(of_head * o.n.chunks() + c) * elements + i];
    const float added = here;
    here = state;
    const SsdPlace place(o.n, of_head * o.n.chunks() + c);
    state = place.decay_from_start(o.scratch.sums + place.in_sequence, place.count - 1) * state + added;
  }
}

inline dim3 ssd_chunk_blocks(const SsdSizes& n) { return dim3(blocks_along_x(n.batch * n.heads * n.chunks())); }
inline dim3 ssd_state_blocks(const SsdSizes& n) {
  return {blocks_along_x(n.batch * n.heads), blocks_along_x(divide_up(n.head_dim * n.state, threads_of_chunk))};
}

/// Sizes with the order of the tokens, which takes its part of the scratch.
inline SsdSizes with_order(const char* name, const Queue& queue, Scratch& scratch, SsdSizes n, const SsdAttributes& attributes) {
  n.order = put_order(name, queue, scratch, attributes.documents, n.positions, n.batch);
  return n;
}
inline std::size_t scratch_of(const SsdSizes& n, const SsdAttributes& attributes, std::size_t numbers) {
  return token_order_scratch(attributes.documents, n.positions, n.batch) + scratch_piece(numbers * sizeof(float));
}

template <typename Element>
void launch_ssd_states(const char* name, const Queue& queue, const SsdOperands<Element>& o) {
  const dim3 chunks = ssd_chunk_blocks(o.n), threads(threads_of_chunk);
  launch(name, queue, {chunks, threads}, ssd_sums_kernel<Element>, o);
  launch(name, queue, {chunks, threads}, ssd_chunk_states_kernel<Element>, o);
  launch(name, queue, {ssd_state_blocks(o.n), threads}, ssd_pass_states_kernel<Element>, o);
}

}  // namespace tandem
