#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/library_attention.h"
#include "runtime/cuda/module/scratch.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_exact_device.h"

// FlashAttention-2 (Dao 2023, algorithm 2) without its atomic additions to dq, whose order would be another in every run: one
// kernel keeps a block of keys and goes over the queries for dk and dv, another keeps a block of queries and goes over the keys
// for dq. The scores and dout v^T are computed in both, seven products for the five of the cost.
//
// As in the forward pass results stay in registers and are the next product's left operand; therefore the first kernel computes
// the transposed scores k q^T. Heads so wide that dk and dv do not fit into the registers together take two passes.
namespace tandem {
namespace {

constexpr int statistics_threads = 256;

/// delta = rowsum(dout * out), by query; a warp each.
template <typename Element>
__global__ void row_sums_kernel(AttentionShape shape, const Element* out, const Element* dout, float* delta) {
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp, lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const int query = static_cast<int>(blockIdx.x) * (statistics_threads / lanes_of_warp) + warp;
  const int head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  if (query >= shape.queries) return;
  const Element* const x = shape.output_rows(out, b, head, query).first;
  const Element* const y = shape.output_rows(dout, b, head, query).first;
  float sum = 0;
  for (int i = lane; i < shape.value_dim; i += lanes_of_warp) sum += to_float(x[i]) * to_float(y[i]);
  sum = warp_sum(sum);
  if (lane == 0) delta[shape.statistics_of(b, head) + query] = sum;
}

/// Of a query, for exp(score - lse) = 2^(score log2(e) - log_sum) and ds = p (dp - delta).
struct QueryStatistics {
  float log_sum, delta;
};

/// A query that does not exist, or that sees no key, gives every key the weight 0.
TANDEM_DEVICE QueryStatistics statistics_of(const AttentionShape& shape, const float* lse, const float* delta, int b, int head,
                                            int query) {
  if (query >= shape.queries) return {INFINITY, 0};
  const std::int64_t at = shape.statistics_of(b, head) + query;
  return {lse[at] == -INFINITY ? INFINITY : lse[at] * log2_of_e, delta[at]};
}

template <int m_tiles, int n_tiles>
TANDEM_DEVICE void scale_by(float (&c)[m_tiles][n_tiles][4], float factor) {
#pragma unroll
  for (int m = 0; m < m_tiles; ++m)
#pragma unroll
    for (int n = 0; n < n_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[m][n][i] *= factor;
}

template <typename Element>
struct BackwardOperands {
  const Element *q, *k, *v, *dout;
  const float *lse, *delta;
  Element *dq, *dk, *dv;
};

template <typename Widths>
struct QueryTiling : Widths {
  static constexpr int warps = 4, threads = warps * lanes_of_warp;
  static constexpr int queries = warps * 16, keys = Widths::head_width <= 192 ? 64 : 32;
  static constexpr int widths = Widths::head_width + Widths::value_width;
  static constexpr std::size_t shared_elements = (queries + 2 * keys) * std::size_t{widths};
};

template <typename Element, typename Tiling>
__global__ void __launch_bounds__(Tiling::threads) query_gradient_kernel(AttentionShape shape, BackwardOperands<Element> x) {
  using HeadTile = SharedTile<Element, Tiling::head_width>;
  using ValueTile = SharedTile<Element, Tiling::value_width>;
  TANDEM_DYNAMIC_SHARED(shared);
  auto* const elements = reinterpret_cast<Element*>(shared);
  const HeadTile queries{elements};
  const ValueTile outputs{queries.data + Tiling::queries * Tiling::head_width};
  const auto keys_of = [=](int stage) {
    return HeadTile{elements + Tiling::queries * Tiling::widths + stage * Tiling::keys * Tiling::widths};
  };
  const auto values_of = [=](int stage) { return ValueTile{keys_of(stage).data + Tiling::keys * Tiling::head_width}; };

  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp, row = static_cast<int>(threadIdx.x) / lanes_of_warp * 16;
  const int head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  const int kv_head = head / shape.queries_per_key_head();
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Tiling::queries;
  const int end_query = smaller(first_query + Tiling::queries, shape.queries);

  const auto visibility = [&](int first_key) {
    return shape.visibility(b, first_query, end_query, first_key, smaller(first_key + Tiling::keys, shape.keys));
  };
  const auto next_seen = [&](int first_key) {
    while (first_key < shape.keys && visibility(first_key) == Visibility::none) first_key += Tiling::keys;
    return first_key;
  };
  const auto copy_block = [&](int stage, int first_key) {
    if (first_key < shape.keys) {
      copy_rows_async<Tiling::keys, Tiling::threads>(keys_of(stage), shape.key_rows(x.k, b, kv_head, first_key));
      copy_rows_async<Tiling::keys, Tiling::threads>(values_of(stage), shape.value_rows(x.v, b, kv_head, first_key));
    }
    copy_async_commit();
  };

  copy_rows_async<Tiling::queries, Tiling::threads>(queries, shape.query_rows(x.q, b, head, first_query));
  copy_rows_async<Tiling::queries, Tiling::threads>(outputs, shape.output_rows(x.dout, b, head, first_query));
  int first_key = next_seen(0), stage = 0;
  copy_block(stage, first_key);
  QueryStatistics statistics[2];
  for (int pair = 0; pair < 2; ++pair)
    statistics[pair] = statistics_of(shape, x.lse, x.delta, b, head, first_query + row + row_of_element(lane, pair * 2));

  float gradient[1][Tiling::head_width / 8][4] = {};
  while (first_key < shape.keys) {
    const int next_key = next_seen(first_key + Tiling::keys);
    copy_block(1 - stage, next_key);
    copy_async_wait<1>();
    __syncthreads();
    constexpr int key_tiles = Tiling::keys / 8;
    float scores[1][key_tiles][4] = {}, score_gradients[1][key_tiles][4] = {};
    add_product(scores, queries, row, keys_of(stage), lane);
    add_product(score_gradients, outputs, row, values_of(stage), lane);
    if (shape.softcap > 0) cap_scores(shape, scores);
#pragma unroll
    for (int n = 0; n < key_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        scores[0][n][i] = fast_exp2(scores[0][n][i] * (shape.scale * log2_of_e) - statistics[i / 2].log_sum);
    if (first_key + Tiling::keys > shape.keys || visibility(first_key) == Visibility::some)
      replace_where(scores, 0, lane,
                    [&](int of_row, int of_column) { return shape.hides(b, first_query + row + of_row, first_key + of_column); });
#pragma unroll
    for (int n = 0; n < key_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        score_gradients[0][n][i] = scores[0][n][i] * (score_gradients[0][n][i] - statistics[i / 2].delta);
    if (shape.softcap > 0) {
#pragma unroll
      for (int n = 0; n < key_tiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) score_gradients[0][n][i] *= shape.slope_at(scores[0][n][i], statistics[i / 2].log_sum);
    }
    add_product(gradient, score_gradients, keys_of(stage), lane);
    __syncthreads();  // this stage is no longer read
    first_key = next_key;
    stage = 1 - stage;
  }
  copy_async_wait<0>();
  __syncthreads();
  scale_by(gradient, shape.scale);
  store_rows(queries, row, gradient, shape.query_rows(x.dq, b, head, first_query), lane);
}

/// What one pass over the queries sums up.
enum class KeyPass {
  dk_and_dv,
  dk,
  dv
};

template <typename Widths, KeyPass pass_>
struct KeyTiling : Widths {
  static constexpr KeyPass pass = pass_;
  static constexpr bool sums_dk = pass != KeyPass::dv, sums_dv = pass != KeyPass::dk;
  static constexpr int widths = Widths::head_width + Widths::value_width;
  static constexpr int warps = widths <= 320 ? 8 : 4, threads = warps * lanes_of_warp;
  static constexpr int keys = warps * 16, queries = widths <= 128 ? 64 : widths <= 256 ? 48 : widths <= 320 ? 16 : 32;
  static constexpr std::size_t shared_elements = (keys + 2 * queries) * std::size_t{widths};
  static constexpr std::size_t statistics_bytes = 2 * queries * sizeof(QueryStatistics);
};

/// A block of queries of one head.
struct QueryBlock {
  int head, first;
};

template <typename Element, typename Tiling>
__global__ void __launch_bounds__(Tiling::threads) key_gradient_kernel(AttentionShape shape, BackwardOperands<Element> x) {
  using HeadTile = SharedTile<Element, Tiling::head_width>;
  using ValueTile = SharedTile<Element, Tiling::value_width>;
  TANDEM_DYNAMIC_SHARED(shared);
  auto* const elements = reinterpret_cast<Element*>(shared);
  const HeadTile keys{elements};
  const ValueTile values{keys.data + Tiling::keys * Tiling::head_width};
  const auto queries_of = [=](int stage) {
    return HeadTile{elements + Tiling::keys * Tiling::widths + stage * Tiling::queries * Tiling::widths};
  };
  const auto outputs_of = [=](int stage) { return ValueTile{queries_of(stage).data + Tiling::queries * Tiling::head_width}; };
  auto* const all_statistics = reinterpret_cast<QueryStatistics*>(elements + Tiling::shared_elements);

  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes_of_warp, row = thread / lanes_of_warp * 16;
  const int kv_head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  const int first_key = static_cast<int>(blockIdx.x) * Tiling::keys;
  const int end_key = smaller(first_key + Tiling::keys, shape.keys);

  const auto visibility = [&](int first_query) {
    return shape.visibility(b, first_query, smaller(first_query + Tiling::queries, shape.queries), first_key, end_key);
  };
  const auto next_seeing = [&](int first_query) {
    while (first_query < shape.queries && visibility(first_query) == Visibility::none) first_query += Tiling::queries;
    return first_query;
  };
  const int first_seeing = next_seeing(0), end_head = (kv_head + 1) * shape.queries_per_key_head();
  const auto exists = [&](QueryBlock block) { return block.head < end_head && block.first < shape.queries; };
  const auto next_of = [&](QueryBlock block) {
    const int next = next_seeing(block.first + Tiling::queries);
    return next < shape.queries ? QueryBlock{block.head, next} : QueryBlock{block.head + 1, first_seeing};
  };
  const auto copy_block = [&](int stage, QueryBlock block) {
    if (exists(block)) {
      copy_rows_async<Tiling::queries, Tiling::threads>(queries_of(stage), shape.query_rows(x.q, b, block.head, block.first));
      copy_rows_async<Tiling::queries, Tiling::threads>(outputs_of(stage), shape.output_rows(x.dout, b, block.head, block.first));
    }
    copy_async_commit();
  };
  const auto read_statistics = [&](QueryBlock block) {
    if (thread >= Tiling::queries || !exists(block)) return QueryStatistics{};
    return statistics_of(shape, x.lse, x.delta, b, block.head, block.first + thread);
  };
  const auto keep_statistics = [&](int stage, QueryStatistics mine) {
    if (thread < Tiling::queries) all_statistics[stage * Tiling::queries + thread] = mine;
  };

  QueryBlock block{kv_head * shape.queries_per_key_head(), first_seeing};
  int stage = 0;
  copy_rows_async<Tiling::keys, Tiling::threads>(keys, shape.key_rows(x.k, b, kv_head, first_key));
  copy_rows_async<Tiling::keys, Tiling::threads>(values, shape.value_rows(x.v, b, kv_head, first_key));
  copy_block(stage, block);
  keep_statistics(stage, read_statistics(block));

  float key_gradient[1][Tiling::sums_dk ? Tiling::head_width / 8 : 1][4] = {};
  float value_gradient[1][Tiling::sums_dv ? Tiling::value_width / 8 : 1][4] = {};
  while (exists(block)) {
    const QueryBlock next = next_of(block);
    copy_block(1 - stage, next);
    const QueryStatistics next_statistics = read_statistics(next);  // on their way while this block is multiplied
    copy_async_wait<1>();
    __syncthreads();
    constexpr int query_tiles = Tiling::queries / 8;
    const QueryStatistics* const statistics = all_statistics + stage * Tiling::queries;
    float probabilities[1][query_tiles][4] = {};
    add_product(probabilities, keys, row, queries_of(stage), lane);
    if (shape.softcap > 0) cap_scores(shape, probabilities);
#pragma unroll
    for (int n = 0; n < query_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float log_sum = statistics[n * 8 + column_of_element(lane, i)].log_sum;
        probabilities[0][n][i] = fast_exp2(probabilities[0][n][i] * (shape.scale * log2_of_e) - log_sum);
      }
    if (visibility(block.first) == Visibility::some)
      replace_where(probabilities, 0, lane,
                    [&](int of_row, int of_column) { return !shape.sees(b, block.first + of_column, first_key + row + of_row); });
    if constexpr (Tiling::sums_dv) add_product(value_gradient, probabilities, outputs_of(stage), lane);
    if constexpr (Tiling::sums_dk) {
      float score_gradients[1][query_tiles][4] = {};
      add_product(score_gradients, values, row, outputs_of(stage), lane);
#pragma unroll
      for (int n = 0; n < query_tiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float delta = statistics[n * 8 + column_of_element(lane, i)].delta;
          score_gradients[0][n][i] = probabilities[0][n][i] * (score_gradients[0][n][i] - delta);
        }
      if (shape.softcap > 0) {
#pragma unroll
        for (int n = 0; n < query_tiles; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            score_gradients[0][n][i] *=
                shape.slope_at(probabilities[0][n][i], statistics[n * 8 + column_of_element(lane, i)].log_sum);
      }
      add_product(key_gradient, score_gradients, queries_of(stage), lane);
    }
    keep_statistics(1 - stage, next_statistics);
    __syncthreads();  // this stage is no longer read
    block = next;
    stage = 1 - stage;
  }
  copy_async_wait<0>();
  __syncthreads();
  if constexpr (Tiling::sums_dk) {
    scale_by(key_gradient, shape.scale);
    store_rows(keys, row, key_gradient, shape.key_rows(x.dk, b, kv_head, first_key), lane);
  }
  if constexpr (Tiling::sums_dv) store_rows(values, row, value_gradient, shape.value_rows(x.dv, b, kv_head, first_key), lane);
}

template <typename Element, typename Widths>
void launch_query_gradient(const Queue& queue, const AttentionShape& shape, const BackwardOperands<Element>& operands) {
  using Tiling = QueryTiling<Widths>;
  const Grid grid{dim3(blocks_along_x(divide_up(shape.queries, Tiling::queries)), static_cast<unsigned>(shape.heads),
                       static_cast<unsigned>(shape.micro_batch)),
                  dim3(Tiling::threads), Tiling::shared_elements * sizeof(Element)};
  launch("attention_backward", queue, grid, query_gradient_kernel<Element, Tiling>, shape, operands);
}

template <typename Element, typename Widths, KeyPass pass>
void launch_key_gradient(const Queue& queue, const AttentionShape& shape, const BackwardOperands<Element>& operands) {
  using Tiling = KeyTiling<Widths, pass>;
  const Grid grid{dim3(blocks_along_x(divide_up(shape.keys, Tiling::keys)), static_cast<unsigned>(shape.kv_heads),
                       static_cast<unsigned>(shape.micro_batch)),
                  dim3(Tiling::threads), Tiling::shared_elements * sizeof(Element) + Tiling::statistics_bytes};
  launch("attention_backward", queue, grid, key_gradient_kernel<Element, Tiling>, shape, operands);
}

}  // namespace

void attention_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse, dout, dq, dk, dv] = checked<9>(OpKind::attention_backward, operands, any);
  expect_types(of_one_type(q, k, v, out, dout, dq, dk, dv) && lse.dtype == DType::f32,
               "attention takes one type, and lse in fp32");
  if (run_library_attention(queue, operands, attributes, AttentionDirection::backward)) return;
  Scratch scratch(queue);
  const AttentionShape shape = shape_of("attention_backward", queue, scratch,
                                        AttentionSizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes), attributes);
  const bool fits = fits_tensor_cores(shape, {q, k, v, out, dout, dq, dk, dv});

  auto* const delta = static_cast<float*>(scratch.take(static_cast<std::size_t>(lse.shape.elements()) * sizeof(float)));
  with_type(q.dtype, [&]<typename Element>(Type<Element>) {
    const Grid grid{dim3(blocks_along_x(divide_up(shape.queries, statistics_threads / lanes_of_warp)),
                         static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.micro_batch)),
                    dim3(statistics_threads)};
    launch("attention_backward", queue, grid, row_sums_kernel<Element>, shape, out.as<const Element>(), dout.as<const Element>(),
           delta);
  });
  if (!fits) return attention_backward_exact(queue, shape, q, k, v, lse, dout, delta, dq, dk, dv);
  const auto run = [&]<typename Element>(Type<Element>) {
    const BackwardOperands<Element> x{q.as<const Element>(),    k.as<const Element>(), v.as<const Element>(),
                                      dout.as<const Element>(), lse.as<const float>(), delta,
                                      dq.as<Element>(),         dk.as<Element>(),      dv.as<Element>()};
    with_tile_widths(shape, [&]<typename Widths>(Widths) {
      launch_query_gradient<Element, Widths>(queue, shape, x);
      if constexpr (Widths::head_width + Widths::value_width <= 320) {
        launch_key_gradient<Element, Widths, KeyPass::dk_and_dv>(queue, shape, x);
      } else {
        launch_key_gradient<Element, Widths, KeyPass::dk>(queue, shape, x);
        launch_key_gradient<Element, Widths, KeyPass::dv>(queue, shape, x);
      }
    });
  };
  q.dtype == DType::bf16 ? run(Type<Bf16>{}) : run(Type<F16>{});
}

std::size_t attention_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  constexpr std::size_t lse = 4;
  const auto& attributes = std::get<AttentionAttributes>(any);
  return std::max(scratch_piece(static_cast<std::size_t>(operands[lse].shape.elements()) * sizeof(float)) +
                      document_scratch(operands[0].shape, operands[1].shape, attributes),
                  library_attention_scratch(operands, attributes, AttentionDirection::backward));
}

}  // namespace tandem
