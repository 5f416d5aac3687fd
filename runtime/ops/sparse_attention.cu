#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/ops/sparse_attention.h"
#include "runtime/ops/sparse_device.h"

// A warp for each query and head, and of the gradients of keys a block for each key, in the order of its queries.
namespace tandem {
namespace {

struct SparseRow {
  std::int64_t b, query, head;

  TANDEM_DEVICE SparseRow(const DeviceSparse& n, std::int64_t row)
      : b(row / n.heads % n.batch), query(row / n.heads / n.batch), head(row % n.heads) {}
};

template <typename Element>
__global__ void sparse_attention_kernel(DeviceSparse n, float scale, std::int64_t value_width, const Element* q, const Element* k,
                                        const std::int32_t* chosen, Element* out, float* lse) {
  const std::int64_t row = std::int64_t{blockIdx.x} * warps_of_sparse + threadIdx.x / lanes_of_warp;
  if (row >= n.queries * n.batch * n.heads) return;
  const SparseRow at(n, row);
  const Element* const query = q + n.query_row(at.b, at.query, at.head);
  const std::int32_t* const keys = chosen + (at.b * n.queries + at.query) * n.most;
  float largest = -INFINITY, sum = 0, values[row_parts] = {};
  for (std::int64_t j = 0; j < n.most && keys[j] >= 0; ++j) {
    const Element* const key = k + n.key_row(at.b, keys[j]);
    const float score = scale * warp_product(query, key, n.width), above = fmaxf(largest, score);
    const float shrink = expf(largest - above), p = expf(score - above);
    for (float& value : values) value *= shrink;
    add_row(values, p, key, value_width);
    sum = sum * shrink + p;
    largest = above;
  }
  store_row(out + row * value_width, values, sum > 0 ? 1 / sum : 0.0F, value_width);
  if (threadIdx.x % lanes_of_warp == 0) lse[(at.b * n.heads + at.head) * n.queries + at.query] = largest + logf(sum);
}

template <typename Element>
struct SparseBackward {
  DeviceSparse n;
  float scale;
  std::int64_t value_width;
  const Element *q, *k;
  const std::int32_t* chosen;
  const Element* out;
  const float* lse;
  const Element* dout;

  /// The probability of a pair, and the gradient of its score.
  TANDEM_DEVICE void pair(const SparseRow& at, const Element* key, float row_sum, float& p, float& gradient) const {
    const std::int64_t of_out = ((at.query * n.batch + at.b) * n.heads + at.head) * value_width;
    const float score = scale * warp_product(q + n.query_row(at.b, at.query, at.head), key, n.width);
    p = expf(score - lse[(at.b * n.heads + at.head) * n.queries + at.query]);
    gradient = scale * p * (warp_product(dout + of_out, key, value_width) - row_sum);
  }
  TANDEM_DEVICE float row_sum(std::int64_t row) const {
    return warp_product(dout + row * value_width, out + row * value_width, value_width);
  }
};

template <typename Element>
__global__ void sparse_attention_queries_kernel(SparseBackward<Element> o, Element* dq) {
  const DeviceSparse& n = o.n;
  const std::int64_t row = std::int64_t{blockIdx.x} * warps_of_sparse + threadIdx.x / lanes_of_warp;
  if (row >= n.queries * n.batch * n.heads) return;
  const SparseRow at(n, row);
  const float row_sum = o.row_sum(row);
  const std::int32_t* const keys = o.chosen + (at.b * n.queries + at.query) * n.most;
  float sums[row_parts] = {};
  for (std::int64_t j = 0; j < n.most && keys[j] >= 0; ++j) {
    const Element* const key = o.k + n.key_row(at.b, keys[j]);
    float p = 0, gradient = 0;
    o.pair(at, key, row_sum, p, gradient);
    add_row(sums, gradient, key, n.width);
  }
  store_row(dq + n.query_row(at.b, at.query, at.head), sums, 1.0F, n.width);
}

template <typename Element>
__global__ void sparse_attention_keys_kernel(SparseBackward<Element> o, Element* dk) {
  TANDEM_DYNAMIC_SHARED(shared);
  const DeviceSparse& n = o.n;
  const std::int64_t b = blockIdx.x % n.batch, key = blockIdx.x / n.batch;
  const Element* const of_key = o.k + n.key_row(b, key);
  float sums[row_parts] = {};
  for (std::int64_t query = threadIdx.x / lanes_of_warp; query < n.queries; query += warps_of_sparse) {
    const std::int32_t* const keys = o.chosen + (b * n.queries + query) * n.most;
    const std::int64_t place = n.place_of(o.chosen, b, query, key);
    if (place < 0 || keys[place] != key) continue;
    for (std::int64_t head = 0; head < n.heads; ++head) {
      const std::int64_t row = (query * n.batch + b) * n.heads + head;
      float p = 0, gradient = 0;
      o.pair(SparseRow(n, row), of_key, o.row_sum(row), p, gradient);
      add_row(sums, gradient, o.q + row * n.width, n.width);
      add_row(sums, p, o.dout + row * o.value_width, o.value_width);
    }
  }
  store_sum_of_warps(dk + n.key_row(b, key), sums, n.width, reinterpret_cast<float*>(shared));
}

/// Of attention the keys that were chosen matter alone, whatever the indexer learns from.
DeviceSparse sizes_of_chosen(const Shape& q, const Shape& k, const Shape& chosen, SparseAttentionAttributes attributes) {
  attributes.all_keys = false;
  const SparseSizes n(q, k, chosen, attributes);
  expect_types(n.width <= widest_row, "sparse attention on GPUs has keys of 1024 elements at most");
  return {n, attributes};
}

unsigned blocks_of_rows(const DeviceSparse& n) {
  return blocks_along_x(divide_up(n.queries * n.batch * n.heads, warps_of_sparse));
}

}  // namespace

void sparse_attention_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [q, k, chosen, out, lse] = checked<5>(OpKind::sparse_attention, operands, any);
  expect_types(of_one_type(q, k, out) && lse.dtype == DType::f32, "sparse_attention takes one type, and lse in fp32");
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const DeviceSparse n = sizes_of_chosen(q.shape, k.shape, chosen.shape, attributes);
  with_type(q.dtype, [&, q = q, k = k, chosen = chosen, out = out, lse = lse]<typename Element>(Type<Element>) {
    launch("sparse_attention", queue, {dim3(blocks_of_rows(n)), dim3(threads_of_sparse)}, sparse_attention_kernel<Element>, n,
           attributes.scale, columns_of(out.shape), q.template as<const Element>(), k.template as<const Element>(),
           chosen.template as<const std::int32_t>(), out.template as<Element>(), lse.template as<float>());
  });
}

void sparse_attention_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [q, k, chosen, out, lse, dout, dq, dk] = checked<8>(OpKind::sparse_attention_backward, operands, any);
  expect_types(of_one_type(q, k, out, dout, dq, dk) && lse.dtype == DType::f32,
               "sparse_attention takes one type, and lse in fp32");
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const DeviceSparse n = sizes_of_chosen(q.shape, k.shape, chosen.shape, attributes);
  with_type(q.dtype, [&, q = q, k = k, chosen = chosen, out = out, lse = lse, dout = dout, dq = dq,
                      dk = dk]<typename Element>(Type<Element>) {
    const SparseBackward<Element> o{n,
                                    attributes.scale,
                                    columns_of(out.shape),
                                    q.template as<const Element>(),
                                    k.template as<const Element>(),
                                    chosen.template as<const std::int32_t>(),
                                    out.template as<const Element>(),
                                    lse.template as<const float>(),
                                    dout.template as<const Element>()};
    launch("sparse_attention_queries", queue, {dim3(blocks_of_rows(n)), dim3(threads_of_sparse)},
           sparse_attention_queries_kernel<Element>, o, dq.template as<Element>());
    launch("sparse_attention_keys", queue,
           {dim3(blocks_along_x(n.keys * n.batch)), dim3(threads_of_sparse),
            static_cast<std::size_t>(warps_of_sparse * n.width) * sizeof(float)},
           sparse_attention_keys_kernel<Element>, o, dk.template as<Element>());
  });
}

}  // namespace tandem
