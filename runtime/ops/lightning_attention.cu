#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/lightning_attention.h"
#include "runtime/ops/lightning_sizes.h"

// A block takes one chunk of one head of one sequence, numbered (b heads + h) chunks + c; states pass from chunk to chunk in a
// kernel of their own. Products are summed by plain arithmetic, not on tensor cores.
namespace tandem {
namespace {

constexpr int threads_of_lightning = 128;

template <typename Element>
struct LightningOperands {
  LightningSizes n;
  const Element* mixed;
  float* states;  ///< [b, heads, chunks, D, D]: what each chunk adds, then what is before it
};

/// The chunk that a block takes.
struct LightningPlace {
  std::int64_t b, h, first, count, in_states;
  float rate;

  TANDEM_DEVICE LightningPlace(const LightningSizes& n, std::int64_t block) {
    const std::int64_t c = block % n.chunks(), of_head = block / n.chunks();
    h = of_head % n.heads;
    b = of_head / n.heads;
    first = c * n.chunk;
    count = n.chunk_end(c) - first;
    in_states = block * n.state();
    rate = rate_of(n, h);
  }
  static TANDEM_DEVICE float rate_of(const LightningSizes& n, std::int64_t h) {
    constexpr float ln_2 = 0.693147181F;
    return n.decay * expf(ln_2 * static_cast<float>(n.exponent(h)));
  }
  TANDEM_DEVICE float fade(std::int64_t positions) const { return expf(-rate * static_cast<float>(positions)); }
};

template <typename A, typename B>
TANDEM_DEVICE float lightning_product(const A* a, const B* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += to_float(a[i]) * to_float(b[i]);
  return sum;
}

/// What each chunk adds to the state after it.
template <typename Element>
__global__ void lightning_states_kernel(LightningOperands<Element> o) {
  const LightningSizes& n = o.n;
  const LightningPlace place(n, blockIdx.x);
  for (std::int64_t i = threadIdx.x; i < n.state(); i += blockDim.x) {
    const std::int64_t e = i / n.head_dim, p = i % n.head_dim;
    float sum = 0;
    for (std::int64_t u = 0; u < place.count; ++u)
      sum += place.fade(place.count - 1 - u) * to_float(o.mixed[n.k(place.first + u, place.b, place.h) + e]) *
             to_float(o.mixed[n.v(place.first + u, place.b, place.h) + p]);
    o.states[place.in_states + i] = sum;
  }
}

/// Turns what each chunk adds into the state before it, or with `back` into the gradient of the state after it.
__global__ void lightning_pass_kernel(LightningSizes n, float* states, bool back) {
  const std::int64_t of_head = blockIdx.x, i = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (i >= n.state()) return;
  const float rate = LightningPlace::rate_of(n, of_head % n.heads);
  float state = 0;
  for (std::int64_t j = 0; j < n.chunks(); ++j) {
    const std::int64_t c = back ? n.chunks() - 1 - j : j;
    float& here = states[(of_head * n.chunks() + c) * n.state() + i];
    const float added = here;
    here = state;
    state = expf(-rate * static_cast<float>(n.chunk_end(c) - c * n.chunk)) * state + added;
  }
}

/// The weights of the positions before in shared memory, then a thread for each element of the head.
template <typename Element>
__global__ void lightning_outputs_kernel(LightningOperands<Element> o, Element* out) {
  TANDEM_DYNAMIC_SHARED(shared);
  auto* const weights = reinterpret_cast<float*>(shared);
  const LightningSizes& n = o.n;
  const LightningPlace place(n, blockIdx.x);
  const float* const state = o.states + place.in_states;
  for (std::int64_t t = 0; t < place.count; ++t) {
    const Element* const query = o.mixed + n.q(place.first + t, place.b, place.h);
    __syncthreads();
    for (std::int64_t u = threadIdx.x; u <= t; u += blockDim.x)
      weights[u] = lightning_product(query, o.mixed + n.k(place.first + u, place.b, place.h), n.head_dim) * place.fade(t - u);
    __syncthreads();
    for (std::int64_t p = threadIdx.x; p < n.head_dim; p += blockDim.x) {
      float sum = 0, from_state = 0;
      for (std::int64_t u = 0; u <= t; ++u) sum += weights[u] * to_float(o.mixed[n.v(place.first + u, place.b, place.h) + p]);
      for (std::int64_t e = 0; e < n.head_dim; ++e) from_state += to_float(query[e]) * state[e * n.head_dim + p];
      out[n.out(place.first + t, place.b, place.h) + p] = from_float<Element>(sum + place.fade(t + 1) * from_state);
    }
  }
}

/// What the outputs of each chunk say of the state before it.
template <typename Element>
__global__ void lightning_state_gradients_kernel(LightningOperands<Element> o, const Element* dout, float* dstates) {
  const LightningSizes& n = o.n;
  const LightningPlace place(n, blockIdx.x);
  for (std::int64_t i = threadIdx.x; i < n.state(); i += blockDim.x) {
    const std::int64_t e = i / n.head_dim, p = i % n.head_dim;
    float sum = 0;
    for (std::int64_t t = 0; t < place.count; ++t)
      sum += place.fade(t + 1) * to_float(o.mixed[n.q(place.first + t, place.b, place.h) + e]) *
             to_float(dout[n.out(place.first + t, place.b, place.h) + p]);
    dstates[place.in_states + i] = sum;
  }
}

/// Row by row of the chunk: in shared memory what position i's query makes of earlier values, what its value makes of later
/// outputs, and what its key makes of later queries.
template <typename Element>
__global__ void lightning_backward_kernel(LightningOperands<Element> o, const Element* dout, const float* dstates,
                                          Element* dmixed) {
  TANDEM_DYNAMIC_SHARED(shared);
  const LightningSizes& n = o.n;
  const LightningPlace place(n, blockIdx.x);
  auto* const of_query = reinterpret_cast<float*>(shared);
  float *const of_key = of_query + n.chunk, *const of_value = of_key + n.chunk;
  const float *const state = o.states + place.in_states, *const dstate = dstates + place.in_states;
  const std::int64_t d = n.head_dim;
  const auto q = [&](std::int64_t t) { return o.mixed + n.q(place.first + t, place.b, place.h); };
  const auto k = [&](std::int64_t t) { return o.mixed + n.k(place.first + t, place.b, place.h); };
  const auto v = [&](std::int64_t t) { return o.mixed + n.v(place.first + t, place.b, place.h); };
  const auto dy = [&](std::int64_t t) { return dout + n.out(place.first + t, place.b, place.h); };
  for (std::int64_t i = 0; i < place.count; ++i) {
    __syncthreads();
    for (std::int64_t t = threadIdx.x; t < place.count; t += blockDim.x) {
      if (t <= i) of_query[t] = lightning_product(dy(i), v(t), d) * place.fade(i - t);
      if (t < i) continue;
      of_key[t] = lightning_product(dy(t), v(i), d) * place.fade(t - i);
      of_value[t] = lightning_product(q(t), k(i), d) * place.fade(t - i);
    }
    __syncthreads();
    const float from_start = place.fade(i + 1), to_end = place.fade(place.count - 1 - i);
    for (std::int64_t e = threadIdx.x; e < d; e += blockDim.x) {
      float dq = from_start * lightning_product(state + e * d, dy(i), d);
      float dk = to_end * lightning_product(dstate + e * d, v(i), d), dv = 0;
      for (std::int64_t j = 0; j < d; ++j) dv += to_float(k(i)[j]) * dstate[j * d + e];
      dv *= to_end;
      for (std::int64_t u = 0; u <= i; ++u) dq += of_query[u] * to_float(k(u)[e]);
      for (std::int64_t t = i; t < place.count; ++t) {
        dk += of_key[t] * to_float(q(t)[e]);
        dv += of_value[t] * to_float(dy(t)[e]);
      }
      dmixed[n.q(place.first + i, place.b, place.h) + e] = from_float<Element>(dq);
      dmixed[n.k(place.first + i, place.b, place.h) + e] = from_float<Element>(dk);
      dmixed[n.v(place.first + i, place.b, place.h) + e] = from_float<Element>(dv);
    }
  }
}

std::int64_t state_elements(const LightningSizes& n) { return n.batch * n.heads * n.chunks() * n.state(); }

inline dim3 lightning_blocks(const LightningSizes& n) { return dim3(blocks_along_x(n.batch * n.heads * n.chunks())); }

void launch_lightning_pass(const char* name, const Queue& queue, const LightningSizes& n, float* states, bool back) {
  const dim3 blocks(blocks_along_x(n.batch * n.heads), blocks_along_x(divide_up(n.state(), threads_of_lightning)));
  launch(name, queue, {blocks, dim3(threads_of_lightning)}, lightning_pass_kernel, n, states, back);
}

template <typename Element>
void launch_lightning_states(const char* name, const Queue& queue, const LightningOperands<Element>& o) {
  launch(name, queue, {lightning_blocks(o.n), dim3(threads_of_lightning)}, lightning_states_kernel<Element>, o);
  launch_lightning_pass(name, queue, o.n, o.states, false);
}

}  // namespace

void lightning_attention_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr auto name = "lightning_attention";
  const auto [mixed, out] = checked<2>(OpKind::lightning_attention, operands, any);
  expect_types(of_one_type(mixed, out), "lightning_attention's operands are of one type");
  const LightningSizes n(mixed.shape, out.shape, std::get<LightningAttributes>(any));
  with_type(mixed.dtype, [&, mixed = mixed, out = out]<typename Element>(Type<Element>) {
    const LightningOperands<Element> o{n, mixed.template as<const Element>(), static_cast<float*>(queue.scratch)};
    launch_lightning_states(name, queue, o);
    launch(name, queue, {lightning_blocks(n), dim3(threads_of_lightning), static_cast<std::size_t>(n.chunk) * sizeof(float)},
           lightning_outputs_kernel<Element>, o, out.template as<Element>());
  });
}

void lightning_attention_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr auto name = "lightning_attention_backward";
  const auto [mixed, dout, dmixed] = checked<3>(OpKind::lightning_attention_backward, operands, any);
  expect_types(of_one_type(mixed, dout, dmixed), "lightning_attention's operands are of one type");
  const LightningSizes n(mixed.shape, dout.shape, std::get<LightningAttributes>(any));
  auto* const states = static_cast<float*>(queue.scratch);
  float* const dstates = states + state_elements(n);
  const dim3 threads(threads_of_lightning);
  with_type(mixed.dtype, [&, mixed = mixed, dout = dout, dmixed = dmixed]<typename Element>(Type<Element>) {
    const LightningOperands<Element> o{n, mixed.template as<const Element>(), states};
    const auto* const dy = dout.template as<const Element>();
    launch_lightning_states(name, queue, o);
    launch(name, queue, {lightning_blocks(n), threads}, lightning_state_gradients_kernel<Element>, o, dy, dstates);
    launch_lightning_pass(name, queue, n, dstates, true);
    launch(name, queue, {lightning_blocks(n), threads, static_cast<std::size_t>(3 * n.chunk) * sizeof(float)},
           lightning_backward_kernel<Element>, o, dy, dstates, dmixed.template as<Element>());
  });
}

std::size_t lightning_attention_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const LightningSizes n(operands[0].shape, operands[1].shape, std::get<LightningAttributes>(any));
  return static_cast<std::size_t>(state_elements(n)) * sizeof(float);
}

std::size_t lightning_attention_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  return 2 * lightning_attention_scratch(operands, any);
}

}  // namespace tandem
