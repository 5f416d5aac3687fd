#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/hyper_gates_device.h"
#include "runtime/ops/hyper_streams_device.h"

// A block sums along a token's row, and a warp of it makes the gates of the sum once more and their gradients. The gradients of
// factors and biases are written by token, and a block sums each of them.
namespace tandem {
namespace {

/// What a warp makes a token's gates and their gradients of, in shared memory, so that it is loaded while x is.
template <int most>
struct GatesOperands {
  static constexpr int most_gates = most * (most + 2), most_factors = 3;
  float logits[most_gates], dgates[most_gates], base[most_factors + most_gates];
};

/// Of that warp: returns, in all lanes, the factor of x in the gradient of x. of_base [factors + gates, T], from the token's
/// column on: the token's share of the gradient of `base`.
template <int most>
TANDEM_DEVICE float gates_backward(const GatesOperands<most>& of_token, SinkhornDivisors<most>* divisors, float* dlogits,
                                   float* of_base, float inverse, const HyperSizes& n, const HyperAttributes& attributes) {
  const float *const z = of_token.logits, *const base = of_token.base, *const dgates = of_token.dgates;
  HyperGatesOfLanes<most> gates(n, attributes.iterations, attributes.epsilon, divisors);
  gates.forward([=](int g) { return base[n.factor_of(g)] * (z[g] * inverse) + base[n.factors + g]; });
  const int j = gates.lane();
  const bool there = gates.there(), mixes = n.mixes();
  float dread = there ? dgates[j] : 0.0F, dwrite = there && mixes ? dgates[n.write(j)] : 0.0F, dmix[most] = {};
#pragma unroll
  for (int to = 0; to < most; ++to)
    if (there && mixes && to < n.streams) dmix[to] = dgates[n.mix(j, to)];
  gates.backward(dread, dwrite, dmix);
  constexpr int through_norm = 3;
  float sums[4] = {};  // of the factors' gradients, and through the norm
  const auto add = [&](int g, int factor, float gradient) {
    const float a = base[factor];
    of_base[(n.factors + g) * n.tokens] = gradient;
    dlogits[g] = gradient * a * inverse;
    sums[through_norm] -= gradient * a * z[g];
    sums[factor] += gradient * z[g] * inverse;
  };
  if (there) {
    add(j, 0, dread);
    if (mixes) {
      add(n.write(j), 1, dwrite);
#pragma unroll
      for (int to = 0; to < most; ++to)
        if (to < n.streams) add(n.mix(j, to), 2, dmix[to]);
    }
  }
  sums_of_lanes<lanes_of_warp>(sums);
#pragma unroll
  for (int factor = 0; factor < 3; ++factor)
    if (j == 0 && factor < n.factors) of_base[factor * n.tokens] = sums[factor];
  return sums[through_norm] * inverse * inverse * inverse / static_cast<float>(n.streams * n.width);
}

/// How the backward of gates uses a token's row of x twice: held in shared memory, its gradient in registers, so that other
/// blocks move data while some make gates and these have theirs under way; or read again, by few large blocks, so that a cache
/// still has it.
template <bool holds>
struct GatesBackwardBlock {
  static constexpr int most_threads = holds ? 256 : 512, blocks = 2;
  static constexpr int vectors_of_thread = 16, gradients_at_once = holds ? vectors_of_thread : 4;
};
constexpr std::int64_t most_bytes_held =
    GatesBackwardBlock<true>::most_threads * GatesBackwardBlock<true>::vectors_of_thread * widest_access;

/// by_token [factors + gates, T]: each token's share of the gradient of `base`. Whole vectors alone are held.
template <int most, int vector, bool holds, typename Element>
__global__ void __launch_bounds__(GatesBackwardBlock<holds>::most_threads, GatesBackwardBlock<holds>::blocks)
    hyper_gates_backward_kernel(const Element* x, const float* logits, const Element* base, const float* dgates, float* dlogits,
                                Element* dx, float* by_token, HyperSizes n, HyperAttributes attributes) {
  constexpr int bytes = vector * static_cast<int>(sizeof(Element)), at_once = GatesBackwardBlock<holds>::gradients_at_once;
  TANDEM_SHARED(float, of_norm, 1);
  TANDEM_SHARED(GatesOperands<most>, of_token, 1);
  TANDEM_SHARED(SinkhornDivisors<most>, divisors, 1);
  TANDEM_DYNAMIC_SHARED(shared);
  const std::int64_t token = blockIdx.x;
  const auto all = static_cast<int>(n.streams * n.width);
  const int thread = static_cast<int>(threadIdx.x), stride = static_cast<int>(blockDim.x) * vector;
  const Element* row = x + token * all;
  Element* const gradient = dx + token * all;
  if constexpr (holds) {
    auto* const held = reinterpret_cast<Element*>(shared);
    for (int i = thread * vector; i < all; i += stride) copy_async(held + i, row + i);
    copy_async_commit();
    row = held;
  }
  for (int g = thread; g < n.factors + n.gates; g += static_cast<int>(blockDim.x)) {
    of_token->base[g] = to_float(base[g]);
    if (g >= n.gates) continue;
    of_token->logits[g] = logits[token * n.gates + g];
    of_token->dgates[g] = dgates[token * n.gates + g];
  }
  // As words; those that are held are loaded without a branch (past the row its end once more), behind which nvcc would take them
  // apart to elements, of a register each.
  using Word = std::conditional_t<holds, std::uint32_t, Element>;
  alignas(widest_access) Word raw[at_once][bytes / sizeof(Word)];
  const auto load_gradients = [&](int first) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int from = holds ? smaller(first + i * stride, all - vector) : first + i * stride;
      if (holds || from < all) copy_aligned<bytes>(raw[i], gradient + from);
    }
  };
  if constexpr (holds) load_gradients(thread * vector);
  copy_async_wait<0>();  // a thread uses what it has copied itself
  const float inverse = inverse_root_mean_square<vector>(row, all, attributes.epsilon_of_norm);
  if (thread < lanes_of_warp) {
    const float through =
        gates_backward<most>(*of_token, divisors, dlogits + token * n.gates, by_token + token, inverse, n, attributes);
    if (thread == 0) of_norm[0] = through;
  }
  __syncthreads();
  const float through_norm = of_norm[0];
  const auto add_to_gradients = [&](int first) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (first + i * stride >= all) continue;
      alignas(widest_access) Element before[vector];
      copy_aligned<bytes>(before, raw[i]);
      float values[vector];
      load(row + first + i * stride, values);
#pragma unroll
      for (int j = 0; j < vector; ++j) values[j] = to_float(before[j]) + through_norm * values[j];
      store(gradient + first + i * stride, values);
    }
  };
  if constexpr (holds) {
    add_to_gradients(thread * vector);
  } else {
    for (int first = thread * vector; first < all; first += stride * at_once) {
      load_gradients(first);
      add_to_gradients(first);
    }
  }
}

constexpr int threads_of_base = 512;

/// A block sums one row of by_token [columns of base, tokens].
template <typename Gradient>
__global__ void hyper_base_kernel(const float* by_token, Gradient* dbase, std::int64_t tokens) {
  const int column = static_cast<int>(blockIdx.x);
  const float before = to_float(dbase[column]);
  float sum = 0;
#pragma unroll 4
  for (std::int64_t token = threadIdx.x; token < tokens; token += threads_of_base) sum += by_token[column * tokens + token];
  sum = block_sum(sum);
  if (threadIdx.x == 0) dbase[column] = from_float<Gradient>(before + sum);
}

}  // namespace

void hyper_gates_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, dgates, dlogits, dx, dbase] = checked<7>(OpKind::hyper_gates_backward, operands, any);
  expect_types(of_one_type(x, base, dx) && of_one_type(logits, dgates, dlogits) && logits.dtype == DType::f32,
               "gates and logits are fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  auto* const by_token = static_cast<float*>(queue.scratch);
  with_type(x.dtype, [&, x = x, logits = logits, base = base, dgates = dgates, dlogits = dlogits,
                      dx = dx]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      constexpr int vector = vector_of<Element>;
      const bool aligned = have_vectors<Element>(n, {x, dx});
      const std::int64_t all = n.streams * n.width, bytes = all * static_cast<std::int64_t>(sizeof(Element));
      const bool holds = aligned && bytes <= most_bytes_held;
      const std::int64_t most_threads = holds ? GatesBackwardBlock<true>::most_threads : GatesBackwardBlock<false>::most_threads;
      const std::int64_t threads =
          divide_up(all, std::int64_t{GatesBackwardBlock<true>::vectors_of_thread} * (aligned ? vector : 1));
      launch(
          "hyper_gates_backward", queue,
          {dim3(blocks_along_x(n.tokens)),
           dim3(static_cast<unsigned>(std::clamp<std::int64_t>(round_up(threads, lanes_of_warp), lanes_of_warp, most_threads))),
           holds ? static_cast<std::size_t>(bytes) : 0},
          holds     ? hyper_gates_backward_kernel<most, vector, true, Element>
          : aligned ? hyper_gates_backward_kernel<most, vector, false, Element>
                    : hyper_gates_backward_kernel<most, 1, false, Element>,
          x.template as<const Element>(), logits.as<const float>(), base.template as<const Element>(), dgates.as<const float>(),
          dlogits.as<float>(), dx.template as<Element>(), by_token, n, hyper_of(any));
    });
  });
  const int columns = n.factors + n.gates;
  with_type(dbase.dtype, [&, dbase = dbase]<typename Gradient>(Type<Gradient>) {
    launch("hyper_gates_backward", queue, {dim3(static_cast<unsigned>(columns)), dim3(threads_of_base)},
           hyper_base_kernel<Gradient>, by_token, dbase.template as<Gradient>(), n.tokens);
  });
}

std::size_t hyper_gates_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const HyperSizes n(operands[0].shape, hyper_of(any));
  return static_cast<std::size_t>(n.tokens * (n.factors + n.gates)) * sizeof(float);
}

}  // namespace tandem
