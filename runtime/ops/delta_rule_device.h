#pragma once

#include <cstdint>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/delta_sizes.h"
#include "runtime/ops/documents_device.h"

namespace tandem {

// What the forward and the backward of the gated delta rule share on a GPU. A block takes one value head of one sequence,
// numbered b heads + h, and goes through its chunks; products are summed by plain arithmetic, not on tensor cores.

inline constexpr int threads_of_rule = 128;

/// What a block leaves in scratch, all in fp32: by position, for its head.
struct DeltaScratch {
  float *q = nullptr, *k = nullptr;                ///< [positions, E], of length one, q scaled
  float *u = nullptr, *from_state = nullptr;       ///< [positions, P]
  float *q_length = nullptr, *k_length = nullptr;  ///< inverse lengths
  float *writing = nullptr, *decays = nullptr, *sums = nullptr;
  float* states = nullptr;  ///< [chunks + 1, E, P]: before each chunk, and after the last

  static TANDEM_HOST_DEVICE std::int64_t of_block(const DeltaSizes& n) {
    return n.positions * (2 * n.key_dim + 2 * n.value_dim + 5) + (n.chunks() + 1) * n.key_dim * n.value_dim;
  }
  TANDEM_HOST_DEVICE DeltaScratch(const DeltaSizes& n, float* memory, std::int64_t block) {
    q = memory + block * of_block(n);
    k = q + n.positions * n.key_dim;
    u = k + n.positions * n.key_dim;
    from_state = u + n.positions * n.value_dim;
    q_length = from_state + n.positions * n.value_dim;
    k_length = q_length + n.positions;
    writing = k_length + n.positions;
    decays = writing + n.positions;
    sums = decays + n.positions;
    states = sums + n.positions;
  }
};

template <typename Element>
struct DeltaOperands {
  DeltaSizes n;
  const Element *mixed, *projected, *parameters;
  float* scratch;

  TANDEM_DEVICE float a(std::int64_t h) const { return -expf(to_float(parameters[n.a_log(h)])); }
  TANDEM_DEVICE float raw_step(std::int64_t t, std::int64_t b, std::int64_t h) const {
    return to_float(projected[n.step(t, b, h)]) + to_float(parameters[n.dt_bias(h)]);
  }
};

/// What of token w, or of the state before token `first`, reaches token t: nothing where another document begins between them.
TANDEM_DEVICE float rule_decay(const DeltaSizes& n, const float* sums, std::int64_t b, std::int64_t t, std::int64_t w) {
  return n.order.reaches_back(b, t, t - w) ? expf(sums[t] - sums[w]) : 0.0F;
}
TANDEM_DEVICE float rule_decay_from(const DeltaSizes& n, const float* sums, std::int64_t b, std::int64_t t, std::int64_t first) {
  return n.order.reaches_back(b, t, t - first + 1) ? expf(sums[t]) : 0.0F;
}

template <typename Number>
TANDEM_DEVICE float rule_dot(const float* a, const Number* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * to_float(b[i]);
  return sum;
}

/// Divides by the length; returns its inverse.
template <typename Element>
TANDEM_DEVICE float to_unit_length(const Element* x, float* to, std::int64_t count, float scale) {
  float squares = delta_rule_epsilon;
  for (std::int64_t e = 0; e < count; ++e) squares += to_float(x[e]) * to_float(x[e]);
  const float inverse = 1 / sqrtf(squares);
  for (std::int64_t e = 0; e < count; ++e) to[e] = scale * inverse * to_float(x[e]);
  return inverse;
}

/// Fills the scratch of one chunk, and the state after it; with `weights` in shared memory, one number for each of its positions.
template <typename Element>
TANDEM_DEVICE void solve_chunk(const DeltaOperands<Element>& o, const DeltaScratch& s, std::int64_t b, std::int64_t h,
                               std::int64_t c, float* weights) {
  const DeltaSizes& n = o.n;
  const std::int64_t first = c * n.chunk, end = n.chunk_end(c), state_size = n.key_dim * n.value_dim;
  const float* const state = s.states + c * state_size;
  const float scale = 1 / sqrtf(static_cast<float>(n.key_dim)), a = o.a(h);
  for (std::int64_t t = first + threadIdx.x; t < end; t += blockDim.x) {
    s.q_length[t] = to_unit_length(o.mixed + n.q(t, b, h), s.q + t * n.key_dim, n.key_dim, scale);
    s.k_length[t] = to_unit_length(o.mixed + n.k(t, b, h), s.k + t * n.key_dim, n.key_dim, 1.0F);
    s.writing[t] = 1 / (1 + expf(-to_float(o.projected[n.gate(t, b, h)])));
    const float raw = o.raw_step(t, b, h);
    s.decays[t] = a * (raw > 20 ? raw : log1pf(expf(raw)));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (std::int64_t t = first; t < end; ++t) s.sums[t] = sum += s.decays[t];
  }
  __syncthreads();
  for (std::int64_t t = first; t < end; ++t) {
    const float* const key = s.k + t * n.key_dim;
    for (std::int64_t w = first + threadIdx.x; w < t; w += blockDim.x)
      weights[w - first] = s.writing[t] * rule_dot(key, s.k + w * n.key_dim, n.key_dim) * rule_decay(n, s.sums, b, t, w);
    __syncthreads();
    for (std::int64_t p = threadIdx.x; p < n.value_dim; p += blockDim.x) {
      float said = 0;
      for (std::int64_t e = 0; e < n.key_dim; ++e) said += key[e] * state[e * n.value_dim + p];
      s.from_state[t * n.value_dim + p] = said;
      float sum = s.writing[t] * (to_float(o.mixed[n.v(t, b, h) + p]) - rule_decay_from(n, s.sums, b, t, first) * said);
      for (std::int64_t w = first; w < t; ++w) sum -= weights[w - first] * s.u[w * n.value_dim + p];
      s.u[t * n.value_dim + p] = sum;
    }
    __syncthreads();
  }
  const float held = rule_decay_from(n, s.sums, b, end - 1, first);
  for (std::int64_t i = threadIdx.x; i < state_size; i += blockDim.x) {
    const std::int64_t e = i / n.value_dim, p = i % n.value_dim;
    float sum = held * state[i];
    for (std::int64_t t = first; t < end; ++t)
      sum += rule_decay(n, s.sums, b, end - 1, t) * s.k[t * n.key_dim + e] * s.u[t * n.value_dim + p];
    s.states[(c + 1) * state_size + i] = sum;
  }
  __syncthreads();
}

/// Sizes with the order of the tokens, which takes its part of the scratch.
inline DeltaSizes with_order(const char* name, const Queue& queue, Scratch& scratch, DeltaSizes n,
                             const DeltaRuleAttributes& attributes) {
  n.order = put_order(name, queue, scratch, attributes.documents, n.positions, n.batch);
  return n;
}
inline std::size_t scratch_of(const DeltaSizes& n, const DeltaRuleAttributes& attributes, std::int64_t numbers) {
  return token_order_scratch(attributes.documents, n.positions, n.batch) +
         scratch_piece(static_cast<std::size_t>(numbers) * sizeof(float));
}

/// Clears the state before the first chunk.
TANDEM_DEVICE void clear_first_state(const DeltaSizes& n, const DeltaScratch& s) {
  for (std::int64_t i = threadIdx.x; i < n.key_dim * n.value_dim; i += blockDim.x) s.states[i] = 0;
  __syncthreads();
}

}  // namespace tandem
