#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/hyper_streams_device.h"
#include "runtime/ops/row_team_device.h"
#include "runtime/ops/row_walk_device.h"

// What is summed along a row is summed by a team of threads for each token.
namespace tandem {
namespace {

template <int most, typename Element>
struct MergedRow {
  const HyperSizes& n;
  const Element *x, *z;
  Element* y;
  float write[most], mix[most][most];

  template <int count>
  TANDEM_DEVICE void at(std::int64_t column) const {
    float streams[most][count], made[count];
    load_streams(n, x + column, streams);
    load(z + column, made);
#pragma unroll
    for (int to = 0; to < most; ++to) {
      if (to >= n.streams) continue;
      float sums[count];
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] = write[to] * made[i];
#pragma unroll
      for (int from = 0; from < most; ++from)
#pragma unroll
        for (int i = 0; i < count; ++i) sums[i] += mix[from][to] * streams[from][i];
      store(y + to * n.width + column, sums);
    }
  }
};

template <int most, typename Element>
struct HyperMerge {
  static constexpr int vector = vector_of<Element>;
  HyperSizes n;
  const Element* x;
  const float* gates;
  const Element* z;
  Element* y;

  TANDEM_DEVICE MergedRow<most, Element> row(std::int64_t token) const {
    const std::int64_t first = token * n.streams * n.width;
    MergedRow<most, Element> result{n, x + first, z + token * n.width, y + first, {}, {}};
    const float* const of_token = gates + token * n.gates;
#pragma unroll
    for (int to = 0; to < most; ++to) {
      if (to >= n.streams) continue;
      result.write[to] = of_token[n.write(to)];
#pragma unroll
      for (int from = 0; from < most; ++from)
        if (from < n.streams) result.mix[from][to] = of_token[n.mix(from, to)];
    }
    return result;
  }
};

template <int most, int vector, typename Element>
__global__ void __launch_bounds__(most_threads_of_team)
    hyper_merge_backward_kernel(const Element* x, const float* gates, const Element* z, const Element* dy, Element* dx,
                                Element* dz, float* dgates, HyperSizes n) {
  const std::int64_t token = row_of_team(), first = token * n.streams * n.width;
  const float* const of_token = gates + token * n.gates;
  float of_write[most] = {}, of_mix[most * most] = {};
  if (token < n.tokens) {
    each_vector<RowShape<vector, 0> >(static_cast<int>(n.width), [&](int column, int) {
      float made[vector], gradients[most][vector], through_half[vector] = {};
      load(z + token * n.width + column, made);
      load_streams(n, dy + first + column, gradients);
#pragma unroll
      for (int to = 0; to < most; ++to) {
        if (to >= n.streams) continue;
        const float write = of_token[n.write(to)];
#pragma unroll
        for (int i = 0; i < vector; ++i) {
          through_half[i] += write * gradients[to][i];
          of_write[to] += gradients[to][i] * made[i];
        }
      }
      store(dz + token * n.width + column, through_half);
#pragma unroll
      for (int from = 0; from < most; ++from) {
        if (from >= n.streams) continue;
        float in[vector], sums[vector] = {};
        load(x + first + from * n.width + column, in);
#pragma unroll
        for (int to = 0; to < most; ++to) {
          if (to >= n.streams) continue;
          const float mix = of_token[n.mix(from, to)];
#pragma unroll
          for (int i = 0; i < vector; ++i) {
            sums[i] += mix * gradients[to][i];
            of_mix[from * most + to] += gradients[to][i] * in[i];
          }
        }
        store(dx + first + from * n.width + column, sums);
      }
    });
  }
  team_sums(of_write);
  team_sums(of_mix);
  if (threadIdx.x != 0 || token >= n.tokens) return;
  float* const out = dgates + token * n.gates;
#pragma unroll
  for (int j = 0; j < most; ++j) {
    if (j >= n.streams) continue;
    out[j] = 0;
    out[n.write(j)] = of_write[j];
#pragma unroll
    for (int to = 0; to < most; ++to)
      if (to < n.streams) out[n.mix(j, to)] = of_mix[j * most + to];
  }
}

}  // namespace

void hyper_merge_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, y] = checked<4>(OpKind::hyper_merge, operands, any);
  expect_types(of_one_type(x, z, y) && gates.dtype == DType::f32, "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype, [&, x = x, gates = gates, z = z, y = y]<typename Element>(Type<Element>) {
    with_streams(n, [&]<int most>(Streams<most>) {
      launch_row_walk("hyper_merge", queue, n.tokens, n.width, have_vectors<Element>(n, {x, z, y}),
                      HyperMerge<most, Element>{n, x.template as<const Element>(), gates.as<const float>(),
                                                z.template as<const Element>(), y.template as<Element>()});
    });
  });
}

void hyper_merge_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, gates, z, dy, dx, dz, dgates] = checked<7>(OpKind::hyper_merge_backward, operands, any);
  expect_types(of_one_type(x, z, dy, dx, dz) && of_one_type(gates, dgates) && gates.dtype == DType::f32,
               "streams are of one type, gates fp32");
  const HyperSizes n(x.shape, hyper_of(any));
  with_type(x.dtype,
            [&, x = x, gates = gates, z = z, dy = dy, dx = dx, dz = dz, dgates = dgates]<typename Element>(Type<Element>) {
              with_streams(n, [&]<int most>(Streams<most>) {
                const bool aligned = have_vectors<Element>(n, {x, z, dy, dx, dz});
                with_looping_teams<Element>(n.width, aligned, [&]<typename Shape>(Shape, const RowTeams& teams) {
                  launch("hyper_merge_backward", queue, {dim3(teams.blocks(n.tokens)), teams.block()},
                         hyper_merge_backward_kernel<most, Shape::vector, Element>, x.template as<const Element>(),
                         gates.as<const float>(), z.template as<const Element>(), dy.template as<const Element>(),
                         dx.template as<Element>(), dz.template as<Element>(), dgates.as<float>(), n);
                });
              });
            });
}

}  // namespace tandem
