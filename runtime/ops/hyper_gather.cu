#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/hyper_streams_device.h"
#include "runtime/ops/row_team_device.h"
#include "runtime/ops/row_walk_device.h"

// From one stream to all and back: hyper_expand, whose backward gathers with factors of 1, and hyper_gather. What is summed along
// a row is summed by a team of threads for each token.
namespace tandem {
namespace {

template <typename Element>
struct ExpandedRow {
  const HyperSizes& n;
  const Element* x;
  Element* y;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t column) const {
    alignas(widest_access) Element raw[count];
    constexpr int bytes = count * static_cast<int>(sizeof(Element));
    copy_aligned<bytes>(raw, x + column);
    for (int j = 0; j < n.streams; ++j) copy_aligned<bytes>(y + j * n.width + column, raw);
  }
};

template <typename Element>
struct HyperExpand {
  static constexpr int vector = vector_of<Element>;
  HyperSizes n;
  const Element* x;
  Element* y;

  TANDEM_DEVICE ExpandedRow<Element> row(std::int64_t token) const {
    return {n, x + token * n.width, y + token * n.streams * n.width};
  }
};

/// y = the sum of factor_j x_j; the factors are gates of the token, or where these are null 1.
template <int most, typename Element>
struct GatheredRow {
  const HyperSizes& n;
  const Element* x;
  Element* y;
  float factors[most];

  template <int count>
  TANDEM_DEVICE void at(std::int64_t column) const {
    float streams[most][count], sums[count] = {};
    load_streams(n, x + column, streams);
#pragma unroll
    for (int j = 0; j < most; ++j)
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += factors[j] * streams[j][i];
    store(y + column, sums);
  }
};

template <int most, typename Element>
struct HyperGather {
  static constexpr int vector = vector_of<Element>;
  HyperSizes n;
  const Element* x;
  const float* gates;
  Element* y;

  TANDEM_DEVICE GatheredRow<most, Element> row(std::int64_t token) const {
    GatheredRow<most, Element> result{n, x + token * n.streams * n.width, y + token * n.width, {}};
#pragma unroll
    for (int j = 0; j < most; ++j)
      if (j < n.streams) result.factors[j] = gates == nullptr ? 1.0F : gates[token * n.gates + j];
    return result;
  }
};

template <int most, int vector, typename Element>
__global__ void __launch_bounds__(most_threads_of_team)
    hyper_gather_backward_kernel(const Element* x, const float* gates, const Element* dy, Element* dx, float* dgates,
                                 HyperSizes n) {
  const std::int64_t token = row_of_team(), first = token * n.streams * n.width;
  float sums[most] = {};
  if (token < n.tokens) {
    float read[most];
#pragma unroll
    for (int j = 0; j < most; ++j) read[j] = j < n.streams ? gates[token * n.gates + j] : 0.0F;
    each_vector<RowShape<vector, 0> >(static_cast<int>(n.width), [&](int column, int) {
      float gradient[vector], streams[most][vector], gradients[most][vector];
      load(dy + token * n.width + column, gradient);
      load_streams(n, x + first + column, streams);
      load_streams(n, dx + first + column, gradients);
#pragma unroll
      for (int j = 0; j < most; ++j) {
        if (j >= n.streams) continue;
#pragma unroll
        for (int i = 0; i < vector; ++i) {
          sums[j] += gradient[i] * streams[j][i];
          gradients[j][i] += read[j] * gradient[i];
        }
        store(dx + first + j * n.width + column, gradients[j]);
      }
    });
  }
  team_sums(sums);
  if (threadIdx.x != 0 || token >= n.tokens) return;
#pragma unroll
  for (int j = 0; j < most; ++j)
    if (j < n.streams) dgates[token * n.gates + j] += sums[j];
}

}  // namespace

void hyper_expand_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, y] = checked<2>(OpKind::hyper_expand, operands, any);
  expect_types(of_one_type(x, y), "hyper_expand's operands are of one type");
  const HyperSizes n(y.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, y = y]<typename Element>(Type<Element>) {
    launch_row_walk("hyper_expand", queue, n.tokens, n.width, have_vectors<Element>(n, {x, y}),
                    HyperExpand<Element>{n, x.template as<const Element>(), y.template as<Element>()});
  });
}

void hyper_expand_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [dy, dx] = checked<2>(OpKind::hyper_expand_backward, operands, any);
  expect_types(of_one_type(dy, dx), "hyper_expand's operands are of one type");
  const HyperSizes n(dy.shape, hyper_of(any));
  with_type(dy.dtype, [&, dy = dy, dx = dx]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      launch_row_walk("hyper_expand_backward", queue, n.tokens, n.width, have_vectors<Element>(n, {dy, dx}),
                      HyperGather<most, Element>{n, dy.template as<const Element>(), nullptr, dx.template as<Element>()});
    });
  });
}

void hyper_gather_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, y] = checked<3>(OpKind::hyper_gather, operands, any);
  expect_types(of_one_type(x, y) && gates.dtype == DType::f32, "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, gates = gates, y = y]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      launch_row_walk(
          "hyper_gather", queue, n.tokens, n.width, have_vectors<Element>(n, {x, y}),
          HyperGather<most, Element>{n, x.template as<const Element>(), gates.as<const float>(), y.template as<Element>()});
    });
  });
}

void hyper_gather_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, dy, dx, dgates] = checked<5>(OpKind::hyper_gather_backward, operands, any);
  expect_types(of_one_type(x, dy, dx) && of_one_type(gates, dgates) && gates.dtype == DType::f32,
               "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, gates = gates, dy = dy, dx = dx, dgates = dgates]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      const bool aligned = have_vectors<Element>(n, {x, dy, dx});
      with_looping_teams<Element>(n.width, aligned, [&]<typename Shape>(Shape, const RowTeams& teams) {
        launch("hyper_gather_backward", queue, {dim3(teams.blocks(n.tokens)), teams.block()},
               hyper_gather_backward_kernel<most, Shape::vector, Element>, x.template as<const Element>(),
               gates.as<const float>(), dy.template as<const Element>(), dx.template as<Element>(), dgates.as<float>(), n);
      });
    });
  });
}

}  // namespace tandem
