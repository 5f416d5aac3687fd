#include "runtime/cuda/module/launch.h"
#include "runtime/ops/attention_exact_device.h"

namespace tandem {
namespace {

constexpr int warps_of_block = 4;
constexpr int columns_of_lane = widest_head / lanes_of_warp;

/// A row that the lanes of a warp share: lane l has the columns l, l + 32, ...
struct SharedRow {
  float columns[columns_of_lane] = {};

  TANDEM_DEVICE void scale(float factor) {
#pragma unroll
    for (int i = 0; i < columns_of_lane; ++i) columns[i] *= factor;
  }
  template <typename Element>
  TANDEM_DEVICE void add(float factor, const Element* row, int width, int lane) {
#pragma unroll
    for (int i = 0; i < columns_of_lane; ++i) {
      const int column = i * lanes_of_warp + lane;
      if (column < width) columns[i] += factor * to_float(row[column]);
    }
  }
  template <typename Element>
  TANDEM_DEVICE void store(Element* row, int width, int lane) const {
#pragma unroll
    for (int i = 0; i < columns_of_lane; ++i) {
      const int column = i * lanes_of_warp + lane;
      if (column < width) row[column] = from_float<Element>(columns[i]);
    }
  }
};

template <typename Element>
TANDEM_DEVICE float dot(const Element* x, const Element* y, int width) {
  float sum = 0;
  for (int i = 0; i < width; ++i) sum += to_float(x[i]) * to_float(y[i]);
  return sum;
}

TANDEM_DEVICE int warp_of_grid() {
  return static_cast<int>(blockIdx.x) * warps_of_block + static_cast<int>(threadIdx.x) / lanes_of_warp;
}
TANDEM_DEVICE int lane_of_warp() { return static_cast<int>(threadIdx.x) % lanes_of_warp; }

template <typename Element, typename AnyShape>
__global__ void attention_exact_kernel(AnyShape shape, const Element* q, const Element* k, const Element* v, Element* out,
                                       float* lse) {
  const int query = warp_of_grid(), lane = lane_of_warp(), head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  if (query >= shape.queries) return;
  const int kv_head = head / shape.queries_per_key_head();
  const auto keys = shape.key_rows(k, b, kv_head, 0);
  const auto values = shape.value_rows(v, b, kv_head, 0);
  const Element* const query_row = shape.query_rows(q, b, head, query).first;
  SharedRow output;
  float largest = -INFINITY, sum = 0;
  for (int first = 0; first < shape.keys; first += lanes_of_warp) {
    const int key = first + lane;
    float score = -INFINITY;
    if (key < shape.keys && shape.sees(b, query, key))
      score = shape.scale * shape.capped(dot(query_row, keys.first + key * keys.stride, shape.head_dim));
    const float top = fmaxf(largest, warp_max(score));
    if (top == -INFINITY) continue;
    const float shrink = expf(largest - top), weight = expf(score - top);
    largest = top;
    sum = sum * shrink + warp_sum(weight);
    output.scale(shrink);
    for (int i = 0; i < smaller(shape.keys - first, lanes_of_warp); ++i)
      output.add(__shfl_sync(every_lane, weight, i), values.first + (first + i) * values.stride, shape.value_dim, lane);
  }
  output.scale(sum > 0 ? 1 / sum : 0.0F);
  output.store(shape.output_rows(out, b, head, query).first, shape.value_dim, lane);
  if (lane == 0) lse[shape.statistics_of(b, head) + query] = sum > 0 ? largest + logf(sum) : -INFINITY;
}

/// What the gradients are made of: a pair's probability, and the gradient of its score before mask, cap and scale.
struct PairGradient {
  float probability, score;
};

template <typename Element>
struct BackwardInput {
  const Element *q, *k, *v, *dout;
  const float *lse, *delta;

  template <typename AnyShape>
  TANDEM_DEVICE PairGradient of(const AnyShape& shape, int b, int head, int query, int key) const {
    if (query >= shape.queries || key >= shape.keys || !shape.sees(b, query, key)) return {0, 0};
    const int kv_head = head / shape.queries_per_key_head();
    const std::int64_t statistic = shape.statistics_of(b, head) + query;
    const float product =
        shape.capped(dot(shape.query_rows(q, b, head, query).first, shape.key_rows(k, b, kv_head, key).first, shape.head_dim));
    const float probability = expf(shape.scale * product - lse[statistic]);
    const float gradient =
        dot(shape.output_rows(dout, b, head, query).first, shape.value_rows(v, b, kv_head, key).first, shape.value_dim);
    return {probability, probability * (gradient - delta[statistic]) * shape.slope(product)};
  }
};

template <typename Element, typename AnyShape>
__global__ void query_gradient_kernel(AnyShape shape, BackwardInput<Element> input, Element* dq) {
  const int query = warp_of_grid(), lane = lane_of_warp(), head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  if (query >= shape.queries) return;
  const auto keys = shape.key_rows(input.k, b, head / shape.queries_per_key_head(), 0);
  SharedRow gradient;
  for (int first = 0; first < shape.keys; first += lanes_of_warp) {
    const float score = input.of(shape, b, head, query, first + lane).score;
    for (int i = 0; i < smaller(shape.keys - first, lanes_of_warp); ++i)
      gradient.add(__shfl_sync(every_lane, score, i), keys.first + (first + i) * keys.stride, shape.head_dim, lane);
  }
  gradient.scale(shape.scale);
  gradient.store(shape.query_rows(dq, b, head, query).first, shape.head_dim, lane);
}

template <typename Element, typename AnyShape>
__global__ void key_gradient_kernel(AnyShape shape, BackwardInput<Element> input, Element* dk, Element* dv) {
  const int key = warp_of_grid(), lane = lane_of_warp(), kv_head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  if (key >= shape.keys) return;
  SharedRow key_gradient, value_gradient;
  for (int i = 0; i < shape.queries_per_key_head(); ++i) {
    const int head = kv_head * shape.queries_per_key_head() + i;
    const auto queries = shape.query_rows(input.q, b, head, 0);
    const auto outputs = shape.output_rows(input.dout, b, head, 0);
    for (int first = 0; first < shape.queries; first += lanes_of_warp) {
      const PairGradient mine = input.of(shape, b, head, first + lane, key);
      for (int j = 0; j < smaller(shape.queries - first, lanes_of_warp); ++j) {
        const float score = __shfl_sync(every_lane, mine.score, j), weight = __shfl_sync(every_lane, mine.probability, j);
        key_gradient.add(score, queries.first + (first + j) * queries.stride, shape.head_dim, lane);
        value_gradient.add(weight, outputs.first + (first + j) * outputs.stride, shape.value_dim, lane);
      }
    }
  }
  key_gradient.scale(shape.scale);
  key_gradient.store(shape.key_rows(dk, b, kv_head, key).first, shape.head_dim, lane);
  value_gradient.store(shape.value_rows(dv, b, kv_head, key).first, shape.value_dim, lane);
}

/// A warp for each of `rows` rows of each head.
Grid grid_of(int rows, int heads, int micro_batch) {
  return {dim3(blocks_along_x(divide_up(rows, warps_of_block)), static_cast<unsigned>(heads), static_cast<unsigned>(micro_batch)),
          dim3(warps_of_block * lanes_of_warp)};
}

}  // namespace

void attention_exact(const Queue& queue, const PackedAttentionShape& any_shape, const DeviceTensor& q, const DeviceTensor& k,
                     const DeviceTensor& v, const DeviceTensor& out, const DeviceTensor& lse) {
  with_type(q.dtype, [&]<typename Element>(Type<Element>) {
    with_packing(any_shape, [&]<typename AnyShape>(const AnyShape& shape) {
      launch("attention", queue, grid_of(shape.queries, shape.heads, shape.micro_batch),
             attention_exact_kernel<Element, AnyShape>, shape, q.as<const Element>(), k.as<const Element>(),
             v.as<const Element>(), out.as<Element>(), lse.as<float>());
    });
  });
}

void attention_backward_exact(const Queue& queue, const PackedAttentionShape& any_shape, const DeviceTensor& q,
                              const DeviceTensor& k, const DeviceTensor& v, const DeviceTensor& lse, const DeviceTensor& dout,
                              const float* delta, const DeviceTensor& dq, const DeviceTensor& dk, const DeviceTensor& dv) {
  with_type(q.dtype, [&]<typename Element>(Type<Element>) {
    const BackwardInput<Element> input{q.as<const Element>(),    k.as<const Element>(), v.as<const Element>(),
                                       dout.as<const Element>(), lse.as<const float>(), delta};
    with_packing(any_shape, [&]<typename AnyShape>(const AnyShape& shape) {
      launch("attention_backward", queue, grid_of(shape.queries, shape.heads, shape.micro_batch),
             query_gradient_kernel<Element, AnyShape>, shape, input, dq.as<Element>());
      launch("attention_backward", queue, grid_of(shape.keys, shape.kv_heads, shape.micro_batch),
             key_gradient_kernel<Element, AnyShape>, shape, input, dk.as<Element>(), dv.as<Element>());
    });
  });
}

}  // namespace tandem
