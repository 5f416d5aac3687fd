#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/hyper_sizes.h"

// Elements of all streams at one place by a thread; what is summed along a row by a warp for each token, whose first lane makes
// the gates. The gradients of factors and biases are written by token, and summed by a thread for each of them.
namespace tandem {
namespace {

constexpr int warps_of_hyper = 8;
constexpr int most_gates = HyperSizes::most_streams * (HyperSizes::most_streams + 2);

Grid grid_of_tokens(const HyperSizes& n) {
  return {dim3(blocks_along_x(divide_up(n.tokens, warps_of_hyper))), dim3(warps_of_hyper * lanes_of_warp)};
}

TANDEM_DEVICE std::int64_t token_of_warp() { return std::int64_t{blockIdx.x} * warps_of_hyper + threadIdx.x / lanes_of_warp; }

/// The sum over [0, count) of term(i), to all lanes.
template <typename Term>
TANDEM_DEVICE float warp_sum_of(std::int64_t count, Term term) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < count; i += lanes_of_warp) sum += term(i);
  return warp_sum(sum);
}

template <typename Element>
struct HyperExpand {
  static constexpr int vector = 1;
  HyperSizes n;
  const Element* x;
  Element* y;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t row = i / n.width;
    y[i] = x[row / n.streams * n.width + i % n.width];
  }
};

template <typename Element>
struct HyperExpandBackward {
  static constexpr int vector = 1;
  HyperSizes n;
  const Element* dy;
  Element* dx;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const Element* const first = dy + i / n.width * n.streams * n.width + i % n.width;
    float sum = 0;
    for (int j = 0; j < n.streams; ++j) sum += to_float(first[j * n.width]);
    dx[i] = from_float<Element>(sum);
  }
};

template <typename Element>
TANDEM_DEVICE float inverse_root_mean_square(const HyperSizes& n, const Element* row, float epsilon) {
  const std::int64_t all = n.streams * n.width;
  const float sum = warp_sum_of(all, [=](std::int64_t i) { return to_float(row[i]) * to_float(row[i]); });
  return 1 / sqrtf(sum / static_cast<float>(all) + epsilon);
}

template <typename Element>
__global__ void hyper_gates_kernel(const Element* x, const float* logits, const Element* base, float* gates, HyperSizes n,
                                   HyperAttributes attributes) {
  const std::int64_t token = token_of_warp();
  if (token >= n.tokens) return;
  const float inverse = inverse_root_mean_square(n, x + token * n.streams * n.width, attributes.epsilon_of_norm);
  if (threadIdx.x % lanes_of_warp != 0) return;
  const float* const z = logits + token * n.gates;
  HyperGates<float> of_token(n, attributes.iterations, attributes.epsilon);
  of_token.forward([=](int g) { return to_float(base[n.factor_of(g)]) * (z[g] * inverse) + to_float(base[n.factors + g]); },
                   gates + token * n.gates);
}

/// by_token [T, factors + gates]: each token's share of the gradient of `base`.
template <typename Element>
__global__ void hyper_gates_backward_kernel(const Element* x, const float* logits, const Element* base, const float* dgates,
                                            float* dlogits, Element* dx, float* by_token, HyperSizes n,
                                            HyperAttributes attributes) {
  const std::int64_t token = token_of_warp();
  if (token >= n.tokens) return;
  const std::int64_t all = n.streams * n.width;
  const Element* const row = x + token * all;
  const float inverse = inverse_root_mean_square(n, row, attributes.epsilon_of_norm);
  float through_norm = 0;
  if (threadIdx.x % lanes_of_warp == 0) {
    const float* const z = logits + token * n.gates;
    float* const of_base = by_token + token * (n.factors + n.gates);
    float values[most_gates], gradients[most_gates];
    for (int g = 0; g < n.gates; ++g) gradients[g] = dgates[token * n.gates + g];
    HyperGates<float> of_token(n, attributes.iterations, attributes.epsilon);
    of_token.forward([=](int g) { return to_float(base[n.factor_of(g)]) * (z[g] * inverse) + to_float(base[n.factors + g]); },
                     values);
    of_token.backward(values, gradients);
    for (int i = 0; i < n.factors; ++i) of_base[i] = 0;
    for (int g = 0; g < n.gates; ++g) {
      const float factor = to_float(base[n.factor_of(g)]);
      of_base[n.factor_of(g)] += gradients[g] * z[g] * inverse;
      of_base[n.factors + g] = gradients[g];
      dlogits[token * n.gates + g] = gradients[g] * factor * inverse;
      through_norm -= gradients[g] * factor * z[g];
    }
    through_norm *= inverse * inverse * inverse / static_cast<float>(all);
  }
  through_norm = warp_sum(through_norm);
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < all; i += lanes_of_warp)
    dx[token * all + i] = from_float<Element>(to_float(dx[token * all + i]) + through_norm * to_float(row[i]));
}

template <typename Gradient>
struct HyperBase {
  static constexpr int vector = 1;
  const float* by_token;
  Gradient* dbase;
  std::int64_t tokens, width;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t token = 0; token < tokens; ++token) sum += by_token[token * width + i];
    dbase[i] = from_float<Gradient>(to_float(dbase[i]) + sum);
  }
};

template <typename Element>
struct HyperGather {
  static constexpr int vector = 1;
  HyperSizes n;
  const Element* x;
  const float* gates;
  Element* y;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t token = i / n.width;
    const Element* const first = x + token * n.streams * n.width + i % n.width;
    float sum = 0;
    for (int j = 0; j < n.streams; ++j) sum += gates[token * n.gates + j] * to_float(first[j * n.width]);
    y[i] = from_float<Element>(sum);
  }
};

template <typename Element>
__global__ void hyper_gather_backward_kernel(const Element* x, const float* gates, const Element* dy, Element* dx, float* dgates,
                                             HyperSizes n) {
  const std::int64_t token = token_of_warp();
  if (token >= n.tokens) return;
  const Element* const gradient = dy + token * n.width;
  for (int j = 0; j < n.streams; ++j) {
    const std::int64_t first = (token * n.streams + j) * n.width, gate = token * n.gates + j;
    const float read = gates[gate];
    const float sum = warp_sum_of(n.width, [=](std::int64_t i) {
      dx[first + i] = from_float<Element>(to_float(dx[first + i]) + read * to_float(gradient[i]));
      return to_float(gradient[i]) * to_float(x[first + i]);
    });
    if (threadIdx.x % lanes_of_warp == 0) dgates[gate] += sum;
  }
}

template <typename Element>
struct HyperMerge {
  static constexpr int vector = 1;
  HyperSizes n;
  const Element* x;
  const float* gates;
  const Element* z;
  Element* y;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t token = i / n.width, first = token * n.streams * n.width + i % n.width;
    const float* const of_token = gates + token * n.gates;
    float streams[HyperSizes::most_streams];
    for (int j = 0; j < n.streams; ++j) streams[j] = to_float(x[first + j * n.width]);
    const float made = to_float(z[i]);
    for (int to = 0; to < n.streams; ++to) {
      float sum = of_token[n.write(to)] * made;
      for (int from = 0; from < n.streams; ++from) sum += of_token[n.mix(from, to)] * streams[from];
      y[first + to * n.width] = from_float<Element>(sum);
    }
  }
};

template <typename Element>
__global__ void hyper_merge_backward_kernel(const Element* x, const float* gates, const Element* z, const Element* dy,
                                            Element* dx, Element* dz, float* dgates, HyperSizes n) {
  const std::int64_t token = token_of_warp();
  if (token >= n.tokens) return;
  const std::int64_t first = token * n.streams * n.width;
  const float* const of_token = gates + token * n.gates;
  float sums[most_gates] = {};
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < n.width; i += lanes_of_warp) {
    const float made = to_float(z[token * n.width + i]);
    float through_half = 0;
    for (int to = 0; to < n.streams; ++to) {
      const float gradient = to_float(dy[first + to * n.width + i]);
      through_half += of_token[n.write(to)] * gradient;
      sums[n.write(to)] += gradient * made;
    }
    dz[token * n.width + i] = from_float<Element>(through_half);
    for (int from = 0; from < n.streams; ++from) {
      const float in = to_float(x[first + from * n.width + i]);
      float sum = 0;
      for (int to = 0; to < n.streams; ++to) {
        const float gradient = to_float(dy[first + to * n.width + i]);
        sum += of_token[n.mix(from, to)] * gradient;
        sums[n.mix(from, to)] += gradient * in;
      }
      dx[first + from * n.width + i] = from_float<Element>(sum);
    }
  }
  for (int g = 0; g < n.gates; ++g) {
    const float sum = warp_sum(sums[g]);
    if (threadIdx.x % lanes_of_warp == 0) dgates[token * n.gates + g] = sum;
  }
}

const HyperAttributes& hyper_of(const OpAttributes& any) { return std::get<HyperAttributes>(any); }

}  // namespace

void hyper_expand_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, y] = checked<2>(OpKind::hyper_expand, operands, any);
  expect_types(of_one_type(x, y), "hyper_expand's operands are of one type");
  with_type(x.dtype, [&, x = x, y = y]<typename Element>(Type<Element>) {
    launch_elementwise("hyper_expand", queue, y.shape.elements(), false,
                       HyperExpand<Element>{{y.shape, hyper_of(any)}, x.template as<const Element>(), y.template as<Element>()});
  });
}

void hyper_expand_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [dy, dx] = checked<2>(OpKind::hyper_expand_backward, operands, any);
  expect_types(of_one_type(dy, dx), "hyper_expand's operands are of one type");
  with_type(dy.dtype, [&, dy = dy, dx = dx]<typename Element>(Type<Element>) {
    const HyperExpandBackward<Element> body{
        {dy.shape, hyper_of(any)}, dy.template as<const Element>(), dx.template as<Element>()};
    launch_elementwise("hyper_expand_backward", queue, dx.shape.elements(), false, body);
  });
}

void hyper_gates_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, gates] = checked<4>(OpKind::hyper_gates, operands, any);
  expect_types(of_one_type(x, base) && of_one_type(logits, gates) && gates.dtype == DType::f32, "gates and logits are fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, logits = logits, base = base, gates = gates]<typename Element>(Type<Element>) {
    launch("hyper_gates", queue, grid_of_tokens(n), hyper_gates_kernel<Element>, x.template as<const Element>(),
           logits.as<const float>(), base.template as<const Element>(), gates.as<float>(), n, hyper_of(any));
  });
}

void hyper_gates_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, logits, base, dgates, dlogits, dx, dbase] = checked<7>(OpKind::hyper_gates_backward, operands, any);
  expect_types(of_one_type(x, base, dx) && of_one_type(logits, dgates, dlogits) && logits.dtype == DType::f32,
               "gates and logits are fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  auto* const by_token = static_cast<float*>(queue.scratch);
  with_type(x.dtype, [&, x = x, logits = logits, base = base, dgates = dgates, dlogits = dlogits,
                      dx = dx]<typename Element>(Type<Element>) {
    launch("hyper_gates_backward", queue, grid_of_tokens(n), hyper_gates_backward_kernel<Element>, x.template as<const Element>(),
           logits.as<const float>(), base.template as<const Element>(), dgates.as<const float>(), dlogits.as<float>(),
           dx.template as<Element>(), by_token, n, hyper_of(any));
  });
  with_type(dbase.dtype, [&, dbase = dbase]<typename Gradient>(Type<Gradient>) {
    const HyperBase<Gradient> body{by_token, dbase.template as<Gradient>(), n.tokens, n.factors + n.gates};
    launch_elementwise("hyper_gates_backward", queue, n.factors + n.gates, false, body);
  });
}

std::size_t hyper_gates_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const HyperSizes n(operands[0].shape, hyper_of(any));
  return static_cast<std::size_t>(n.tokens * (n.factors + n.gates)) * sizeof(float);
}

void hyper_gather_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, y] = checked<3>(OpKind::hyper_gather, operands, any);
  expect_types(of_one_type(x, y) && gates.dtype == DType::f32, "streams are of one type, gates fp32");
  with_type(x.dtype, [&, x = x, gates = gates, y = y]<typename Element>(Type<Element>) {
    const HyperGather<Element> body{
        {x.shape, hyper_of(any)}, x.template as<const Element>(), gates.as<const float>(), y.template as<Element>()};
    launch_elementwise("hyper_gather", queue, y.shape.elements(), false, body);
  });
}

void hyper_gather_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, dy, dx, dgates] = checked<5>(OpKind::hyper_gather_backward, operands, any);
  expect_types(of_one_type(x, dy, dx) && of_one_type(gates, dgates) && gates.dtype == DType::f32,
               "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, gates = gates, dy = dy, dx = dx, dgates = dgates]<typename Element>(Type<Element>) {
    launch("hyper_gather_backward", queue, grid_of_tokens(n), hyper_gather_backward_kernel<Element>,
           x.template as<const Element>(), gates.as<const float>(), dy.template as<const Element>(), dx.template as<Element>(),
           dgates.as<float>(), n);
  });
}

void hyper_merge_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, y] = checked<4>(OpKind::hyper_merge, operands, any);
  expect_types(of_one_type(x, z, y) && gates.dtype == DType::f32, "streams are of one type, gates fp32");
  with_type(x.dtype, [&, x = x, gates = gates, z = z, y = y]<typename Element>(Type<Element>) {
    const HyperMerge<Element> body{{x.shape, hyper_of(any)},
                                   x.template as<const Element>(),
                                   gates.as<const float>(),
                                   z.template as<const Element>(),
                                   y.template as<Element>()};
    launch_elementwise("hyper_merge", queue, z.shape.elements(), false, body);
  });
}

void hyper_merge_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, dy, dx, dz, dgates] = checked<7>(OpKind::hyper_merge_backward, operands, any);
  expect_types(of_one_type(x, z, dy, dx, dz) && of_one_type(gates, dgates) && gates.dtype == DType::f32,
               "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(
      x.dtype, [&, x = x, gates = gates, z = z, dy = dy, dx = dx, dz = dz, dgates = dgates]<typename Element>(Type<Element>) {
        launch("hyper_merge_backward", queue, grid_of_tokens(n), hyper_merge_backward_kernel<Element>,
               x.template as<const Element>(), gates.as<const float>(), z.template as<const Element>(),
               dy.template as<const Element>(), dx.template as<Element>(), dz.template as<Element>(), dgates.as<float>(), n);
      });
}

}  // namespace tandem
