#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/hyper_gates_device.h"
#include "runtime/ops/hyper_streams_device.h"

// The sum along a row, of which gates are made, is a block's; a warp of it makes them.
namespace tandem {
namespace {

constexpr int most_threads_of_gates = 128;

template <int most, int vector, typename Element>
__global__ void __launch_bounds__(most_threads_of_gates)
    hyper_gates_kernel(const Element* x, const float* logits, const Element* base, float* gates, HyperSizes n,
                       HyperAttributes attributes) {
  const std::int64_t token = blockIdx.x;
  const auto all = static_cast<int>(n.streams * n.width);
  const float inverse = inverse_root_mean_square<vector>(x + token * all, all, attributes.epsilon_of_norm);
  if (threadIdx.x >= lanes_of_warp) return;
  const float* const z = logits + token * n.gates;
  float* const out = gates + token * n.gates;
  HyperGatesOfLanes<most> of_token(n, attributes.iterations, attributes.epsilon, nullptr);
  of_token.forward([=](int g) { return to_float(base[n.factor_of(g)]) * (z[g] * inverse) + to_float(base[n.factors + g]); });
  const int j = of_token.lane();
  if (!of_token.there()) return;
  out[j] = of_token.read;
  if (!n.mixes()) return;
  out[n.write(j)] = of_token.write;
#pragma unroll
  for (int to = 0; to < most; ++to)
    if (to < n.streams) out[n.mix(j, to)] = of_token.mix[to];
}

/// Blocks that read a row of all streams twice; few threads, so that many tokens' gates are under way at once.
dim3 threads_of_gates(const HyperSizes& n, int vector) {
  constexpr std::int64_t vectors_of_thread = 8;
  const std::int64_t wanted = divide_up(n.streams * n.width, vectors_of_thread * vector);
  return dim3(
      static_cast<unsigned>(std::clamp<std::int64_t>(round_up(wanted, lanes_of_warp), lanes_of_warp, most_threads_of_gates)));
}

}  // namespace

void hyper_gates_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, gates] = checked<4>(OpKind::hyper_gates, operands, any);
  expect_types(of_one_type(x, base) && of_one_type(logits, gates) && gates.dtype == DType::f32, "gates and logits are fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, logits = logits, base = base, gates = gates]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      constexpr int vector = vector_of<Element>;
      const bool aligned = have_vectors<Element>(n, {x});
      launch("hyper_gates", queue, {dim3(blocks_along_x(n.tokens)), threads_of_gates(n, aligned ? vector : 1)},
             aligned ? hyper_gates_kernel<most, vector, Element> : hyper_gates_kernel<most, 1, Element>,
             x.template as<const Element>(), logits.as<const float>(), base.template as<const Element>(), gates.as<float>(), n,
             hyper_of(any));
    });
  });
}

}  // namespace tandem
