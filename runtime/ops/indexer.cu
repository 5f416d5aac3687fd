#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/scratch.h"
#include "runtime/ops/indexer.h"
#include "runtime/ops/sparse_device.h"

// A block for each query; of the gradients of keys one for each key, in the order of its queries.
namespace tandem {
namespace {

template <typename Element>
struct IndexOperands {
  DeviceSparse n;
  float scale;
  const Element *q, *k, *w;
  const std::int32_t* chosen;

  TANDEM_DEVICE float weight(std::int64_t b, std::int64_t query, std::int64_t head) const {
    return scale * to_float(w[(query * n.batch + b) * n.heads + head]);
  }
  TANDEM_DEVICE float dot(std::int64_t b, std::int64_t query, std::int64_t head, std::int64_t key) const {
    return product_of_thread(q + n.query_row(b, query, head), k + n.key_row(b, key), n.width);
  }
  TANDEM_DEVICE float score(std::int64_t b, std::int64_t query, std::int64_t key) const {
    float sum = 0;
    for (std::int64_t head = 0; head < n.heads; ++head) sum += weight(b, query, head) * fmaxf(0.0F, dot(b, query, head, key));
    return sum;
  }
};

/// A key is chosen if fewer than so many are before it: by its score, among equal ones by its number.
template <typename Element>
__global__ void index_select_kernel(IndexOperands<Element> o, float* all_scores, std::int32_t* all_marks, std::int32_t* chosen) {
  TANDEM_SHARED(std::int32_t, counts, threads_of_sparse + 1);
  const DeviceSparse& n = o.n;
  const std::int64_t b = blockIdx.x / n.queries, query = blockIdx.x % n.queries;
  float* const scores = all_scores + blockIdx.x * n.keys;
  std::int32_t* const marks = all_marks + blockIdx.x * n.keys;
  for (std::int64_t key = threadIdx.x; key < n.keys; key += blockDim.x)
    scores[key] = n.sees(query, key) ? o.score(b, query, key) : 0.0F;
  __syncthreads();
  const std::int64_t part = (n.keys + threads_of_sparse - 1) / threads_of_sparse;
  const std::int64_t first = threadIdx.x * part, end = smaller(first + part, n.keys);
  std::int32_t count = 0;
  for (std::int64_t key = first; key < end; ++key) {
    std::int64_t before = 0;
    for (std::int64_t other = 0; other < n.keys && before < n.most; ++other)
      if (n.sees(query, other) && (scores[other] > scores[key] || (scores[other] == scores[key] && other < key))) ++before;
    marks[key] = n.sees(query, key) && before < n.most ? 1 : 0;
    count += marks[key];
  }
  counts[threadIdx.x + 1] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    counts[0] = 0;
    for (int i = 0; i < threads_of_sparse; ++i) counts[i + 1] += counts[i];
  }
  __syncthreads();
  std::int32_t* const row = chosen + blockIdx.x * n.most;
  std::int64_t place = counts[threadIdx.x];
  for (std::int64_t key = first; key < end; ++key)
    if (marks[key] != 0) row[place++] = static_cast<std::int32_t>(key);
  for (std::int64_t i = counts[threads_of_sparse] + static_cast<std::int64_t>(threadIdx.x); i < n.most; i += blockDim.x)
    row[i] = -1;
}

template <typename Element>
__global__ void index_target_kernel(IndexOperands<Element> o, float* target) {
  const DeviceSparse& n = o.n;
  const std::int64_t b = blockIdx.x / n.queries, query = blockIdx.x % n.queries, places = n.places();
  float* const row = target + blockIdx.x * places;
  for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x) row[j] = 0;
  for (std::int64_t head = 0; head < n.heads; ++head) {
    float largest = -INFINITY, sum = 0;
    for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x)
      if (const std::int32_t key = n.key_at(o.chosen, b, query, j); key >= 0)
        largest = fmaxf(largest, o.scale * o.dot(b, query, head, key));
    largest = block_max(largest);
    __syncthreads();
    for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x)
      if (const std::int32_t key = n.key_at(o.chosen, b, query, j); key >= 0)
        sum += expf(o.scale * o.dot(b, query, head, key) - largest);
    sum = block_sum(sum);
    __syncthreads();
    for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x)
      if (const std::int32_t key = n.key_at(o.chosen, b, query, j); key >= 0)
        row[j] += expf(o.scale * o.dot(b, query, head, key) - largest) / sum;
  }
}

/// Of each query: the gradients of its scores, and those of one of its heads.
struct IndexScratch {
  float *scores, *of_head;
};

template <typename Element>
__global__ void index_loss_queries_kernel(IndexOperands<Element> o, float coefficient, const float* target, IndexScratch scratch,
                                          Element* dq, Element* dw) {
  const DeviceSparse& n = o.n;
  const std::int64_t b = blockIdx.x / n.queries, query = blockIdx.x % n.queries, places = n.places();
  const float* const goals = target + blockIdx.x * places;
  float* const scores = scratch.scores + blockIdx.x * places;
  float* const of_head = scratch.of_head + blockIdx.x * places;
  float largest = -INFINITY, sum = 0, whole = 0;
  for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x)
    if (const std::int32_t key = n.key_at(o.chosen, b, query, j); key >= 0) {
      scores[j] = o.score(b, query, key);
      largest = fmaxf(largest, scores[j]);
      whole += goals[j];
    }
  largest = block_max(largest);
  __syncthreads();
  whole = block_sum(whole);
  __syncthreads();
  for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x)
    if (n.key_at(o.chosen, b, query, j) >= 0) sum += expf(scores[j] - largest);
  sum = block_sum(sum);
  for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x)
    if (n.key_at(o.chosen, b, query, j) >= 0)
      scores[j] = coefficient * (expf(scores[j] - largest) / sum - (whole > 0 ? goals[j] / whole : 0.0F));
  for (std::int64_t head = 0; head < n.heads; ++head) {
    const float weight = o.weight(b, query, head);
    float of_weight = 0;
    for (std::int64_t j = threadIdx.x; j < places; j += blockDim.x) {
      const std::int32_t key = n.key_at(o.chosen, b, query, j);
      const float dot = key >= 0 ? o.dot(b, query, head, key) : 0.0F;
      of_head[j] = dot > 0 ? scores[j] * weight : 0.0F;
      if (dot > 0) of_weight += scores[j] * o.scale * dot;
    }
    __syncthreads();
    of_weight = block_sum(of_weight);
    if (threadIdx.x == 0) dw[(query * n.batch + b) * n.heads + head] = from_float<Element>(of_weight);
    for (std::int64_t i = threadIdx.x; i < n.width; i += blockDim.x) {
      float gradient = 0;
      for (std::int64_t j = 0; j < places; ++j)
        if (const std::int32_t key = n.key_at(o.chosen, b, query, j); key >= 0)
          gradient += of_head[j] * to_float(o.k[n.key_row(b, key) + i]);
      dq[n.query_row(b, query, head) + i] = from_float<Element>(gradient);
    }
    __syncthreads();
  }
}

template <typename Element>
__global__ void index_loss_keys_kernel(IndexOperands<Element> o, const float* gradients, Element* dk) {
  TANDEM_DYNAMIC_SHARED(shared);
  const DeviceSparse& n = o.n;
  const std::int64_t b = blockIdx.x % n.batch, key = blockIdx.x / n.batch, places = n.places();
  float sums[row_parts] = {};
  for (std::int64_t query = threadIdx.x / lanes_of_warp; query < n.queries; query += warps_of_sparse) {
    const std::int64_t place = n.place_of(o.chosen, b, query, key);
    if (place < 0) continue;
    const float gradient = gradients[(b * n.queries + query) * places + place];
    for (std::int64_t head = 0; head < n.heads; ++head) {
      const Element* const row = o.q + n.query_row(b, query, head);
      if (warp_product(row, o.k + n.key_row(b, key), n.width) > 0)
        add_row(sums, gradient * o.weight(b, query, head), row, n.width);
    }
  }
  store_sum_of_warps(dk + n.key_row(b, key), sums, n.width, reinterpret_cast<float*>(shared));
}

DeviceSparse sizes_of_indexer(const Shape& q, const Shape& k, const Shape& chosen, const SparseAttentionAttributes& attributes) {
  const SparseSizes n(q, k, chosen, attributes);
  expect_types(n.width <= widest_row, "an indexer on GPUs has keys of 1024 elements at most");
  return {n, attributes};
}

std::size_t bytes_by_query(const DeviceSparse& n, std::int64_t of_query) {
  return static_cast<std::size_t>(n.batch * n.queries * of_query) * sizeof(float);
}

Grid grid_of_queries(const DeviceSparse& n) { return {dim3(blocks_along_x(n.batch * n.queries)), dim3(threads_of_sparse)}; }

}  // namespace

void index_select_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [q, k, w, chosen] = checked<4>(OpKind::index_select, operands, any);
  expect_types(of_one_type(q, k, w), "an indexer's operands are of one type");
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const DeviceSparse n = sizes_of_indexer(q.shape, k.shape, chosen.shape, attributes);
  Scratch scratch(queue);
  auto* const scores = static_cast<float*>(scratch.take(bytes_by_query(n, n.keys)));
  auto* const marks = static_cast<std::int32_t*>(scratch.take(bytes_by_query(n, n.keys)));
  with_type(q.dtype, [&, q = q, k = k, w = w, chosen = chosen]<typename Element>(Type<Element>) {
    const IndexOperands<Element> o{
        n,      attributes.scale, q.template as<const Element>(), k.template as<const Element>(), w.template as<const Element>(),
        nullptr};
    launch("index_select", queue, grid_of_queries(n), index_select_kernel<Element>, o, scores, marks,
           chosen.template as<std::int32_t>());
  });
}

std::size_t index_select_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const DeviceSparse n =
      sizes_of_indexer(operands[0].shape, operands[1].shape, operands[3].shape, std::get<SparseAttentionAttributes>(any));
  return 2 * scratch_piece(bytes_by_query(n, n.keys));
}

void index_target_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [q, k, chosen, target] = checked<4>(OpKind::index_target, operands, any);
  expect_types(of_one_type(q, k) && target.dtype == DType::f32, "an indexer's target is fp32");
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const DeviceSparse n(SparseSizes(q.shape, k.shape, chosen.shape, attributes), attributes);
  with_type(q.dtype, [&, q = q, k = k, chosen = chosen, target = target]<typename Element>(Type<Element>) {
    const IndexOperands<Element> o{n,
                                   attributes.scale,
                                   q.template as<const Element>(),
                                   k.template as<const Element>(),
                                   nullptr,
                                   chosen.template as<const std::int32_t>()};
    launch("index_target", queue, grid_of_queries(n), index_target_kernel<Element>, o, target.template as<float>());
  });
}

void index_loss_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [q, k, w, chosen, target, dq, dk, dw] = checked<8>(OpKind::index_loss_backward, operands, any);
  expect_types(of_one_type(q, k, w, dq, dk, dw) && target.dtype == DType::f32,
               "an indexer's operands are of one type, and its target fp32");
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const DeviceSparse n = sizes_of_indexer(q.shape, k.shape, chosen.shape, attributes);
  const std::int64_t places = columns_of(target.shape);
  Scratch pieces(queue);
  IndexScratch scratch{};
  scratch.scores = static_cast<float*>(pieces.take(bytes_by_query(n, places)));
  scratch.of_head = static_cast<float*>(pieces.take(bytes_by_query(n, places)));
  with_type(q.dtype, [&, q = q, k = k, w = w, chosen = chosen, target = target, dq = dq, dk = dk,
                      dw = dw]<typename Element>(Type<Element>) {
    const IndexOperands<Element> o{n,
                                   attributes.scale,
                                   q.template as<const Element>(),
                                   k.template as<const Element>(),
                                   w.template as<const Element>(),
                                   chosen.template as<const std::int32_t>()};
    launch("index_loss_queries", queue, grid_of_queries(n), index_loss_queries_kernel<Element>, o, attributes.coefficient,
           target.template as<const float>(), scratch, dq.template as<Element>(), dw.template as<Element>());
    launch("index_loss_keys", queue,
           {dim3(blocks_along_x(n.keys * n.batch)), dim3(threads_of_sparse),
            static_cast<std::size_t>(warps_of_sparse * n.width) * sizeof(float)},
           index_loss_keys_kernel<Element>, o, scratch.scores, dk.template as<Element>());
  });
}

std::size_t index_loss_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const DeviceSparse n =
      sizes_of_indexer(operands[0].shape, operands[1].shape, operands[3].shape, std::get<SparseAttentionAttributes>(any));
  return 2 * scratch_piece(bytes_by_query(n, columns_of(operands[4].shape)));
}

}  // namespace tandem
