#include "runtime/cuda/module/check.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/library_attention.h"
#include "runtime/cuda/module/scratch.h"
#include "runtime/cuda/module/turns.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_exact_device.h"

// FlashAttention-2 (Dao 2023, algorithm 2): a block of threads keeps a block of keys and goes over the queries, five products for
// each. It sums dk and dv itself and adds its part of dq to a sum in fp32, in turns, where FlashAttention adds in another order
// in every run. All go from the last queries to the first, and the turn is the earlier keys', which see as many queries or more:
// once the blocks have begun one after the other none waits.
//
// As in the forward pass results stay in registers and are the next product's left operand; therefore the scores are computed
// transposed, k q^T. Their gradients go through shared memory once more, to be an operand of dq. Heads so wide that dk and dv do
// not fit into the registers together take two passes.
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

/// The sums of dq in fp32, by [b,H] and block of queries, and what orders the additions to them; all begin as zeros.
struct QuerySums {
  float* sums;
  int* turns;    ///< by [b,H] and block of queries: the number of the last block of keys that has added to it, plus one
  int* tickets;  ///< by [b,G]: the blocks of keys that have begun
};

/// What one pass over the queries sums up.
enum class KeyPass {
  dk_and_dv,
  dk,
  dv
};

template <typename Widths, KeyPass pass_, bool packed>
struct KeyTiling : Widths {
  static constexpr KeyPass pass = pass_;
  static constexpr bool sums_dk = pass != KeyPass::dv, sums_dv = pass != KeyPass::dk;
  static constexpr int widths = Widths::head_width + Widths::value_width;
  static constexpr int warps = widths <= 320 ? 8 : 4, threads = warps * lanes_of_warp;
  static constexpr int keys = warps * 16, queries = widths <= 128   ? 64
                                                    : widths <= 256 ? (packed ? 32 : 48)
                                                    : widths <= 320 ? 16
                                                                    : 32;
  static constexpr std::size_t operand_elements = (keys + 2 * queries) * std::size_t{widths};
  static constexpr int gradient_width = 64;  ///< of a row of the scores' gradients, which has `queries` elements
  static constexpr std::size_t gradient_elements = sums_dk ? keys * std::size_t{gradient_width} : 0;
  static constexpr std::size_t statistics_bytes = 2 * queries * sizeof(QueryStatistics);
  static constexpr std::size_t shared_bytes = (operand_elements + gradient_elements) * 2 + statistics_bytes;
  static_assert(queries <= gradient_width);
};

/// The sums of one block of queries lie as the warps hold them: by tile of 16 x 8, element of a lane, lane.
template <typename Tiling>
struct SumsOfBlock {
  static constexpr int tiles_across = Tiling::head_width / 8, elements = Tiling::queries * Tiling::head_width;

  TANDEM_DEVICE static int at(int row_tile, int column_tile, int element, int lane) {
    return ((row_tile * tiles_across + column_tile) * 4 + element) * lanes_of_warp + lane;
  }
};

/// Adds a block of keys' part of dq = ds k / scale to the sums of a block of queries. The warps share it by columns, and by rows
/// where there are more warps than pairs of tiles.
template <typename Tiling, typename Element>
TANDEM_DEVICE void add_query_gradient(float* sums, SharedTile<Element, Tiling::gradient_width> score_gradients,
                                      SharedTile<Element, Tiling::head_width> keys, int warp, int lane) {
  constexpr int pairs = Tiling::head_width / 16, across = pairs < Tiling::warps ? pairs : Tiling::warps;
  constexpr int m_tiles = Tiling::queries / 16 / (Tiling::warps / across);
  const int first_tile = warp / across * m_tiles;
#pragma unroll 1
  for (int pair = warp % across; pair < pairs; pair += across) {
    float gradient[m_tiles][2][4] = {};
    add_product_of_columns<Tiling::keys>(gradient, score_gradients, first_tile * 16, keys, pair * 16, lane);
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          add_in_turn(sums + SumsOfBlock<Tiling>::at(first_tile + m, pair * 2 + n, i, lane), gradient[m][n][i]);
  }
}

/// A block of queries of one head.
struct QueryBlock {
  int head, first;
};

template <typename Element, typename Tiling, typename AnyShape>
__global__ void __launch_bounds__(Tiling::threads)
    key_gradient_kernel(AnyShape shape, BackwardOperands<Element> x, QuerySums of_queries) {
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
  const SharedTile<Element, Tiling::gradient_width> of_scores{elements + Tiling::operand_elements};
  auto* const all_statistics =
      reinterpret_cast<QueryStatistics*>(elements + Tiling::operand_elements + Tiling::gradient_elements);

  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes_of_warp, row = thread / lanes_of_warp * 16;
  const int kv_head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  int key_block = static_cast<int>(blockIdx.x);
  if constexpr (Tiling::sums_dk) {
    TANDEM_SHARED(int, ticket, 1);
    if (thread == 0) ticket[0] = atomicAdd(&of_queries.tickets[b * shape.kv_heads + kv_head], 1);
    __syncthreads();
    key_block = ticket[0];
  }
  const int first_key = key_block * Tiling::keys;

  const auto visibility_of = [&](int first_query, int first_of_keys) {
    return shape.visibility(b, first_query, smaller(first_query + Tiling::queries, shape.queries), first_of_keys,
                            smaller(first_of_keys + Tiling::keys, shape.keys));
  };
  const auto visibility = [&](int first_query) { return visibility_of(first_query, first_key); };
  const auto last_seeing = [&](int first_query) {
    while (first_query >= 0 && visibility(first_query) == Visibility::none) first_query -= Tiling::queries;
    return first_query;
  };
  // Computed where it is needed, as a register more would be spilled.
  const auto first_head = [&] { return static_cast<int>(blockIdx.y) * shape.queries_per_key_head(); };
  const int query_blocks = (shape.queries + Tiling::queries - 1) / Tiling::queries;
  const auto exists = [&](QueryBlock block) { return block.first >= 0; };
  const auto next_of = [&](QueryBlock block) {
    if (block.head + 1 < first_head() + shape.queries_per_key_head()) return QueryBlock{block.head + 1, block.first};
    return QueryBlock{first_head(), last_seeing(block.first - Tiling::queries)};
  };
  const auto sums_of = [&](QueryBlock block) {
    return (std::int64_t{b} * shape.heads + block.head) * query_blocks + block.first / Tiling::queries;
  };
  /// Of the last block of keys before this one that adds to the sums of these queries, plus one; 0 for none.
  const auto turn_before = [&](QueryBlock block) {
    int before = key_block - 1;
    while (before >= 0 && visibility_of(block.first, before * Tiling::keys) == Visibility::none) --before;
    return before + 1;
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

  QueryBlock block{first_head(), last_seeing((query_blocks - 1) * Tiling::queries)};
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
      put_rows(of_scores, row, score_gradients, lane);
      add_product(key_gradient, score_gradients, queries_of(stage), lane);
      if (thread == 0) wait_for_turn(of_queries.turns + sums_of(block), turn_before(block));
      __syncthreads();
      add_query_gradient<Tiling>(of_queries.sums + sums_of(block) * SumsOfBlock<Tiling>::elements, of_scores, keys,
                                 thread / lanes_of_warp, lane);
    }
    keep_statistics(1 - stage, next_statistics);
    __syncthreads();  // this stage is no longer read
    if constexpr (Tiling::sums_dk) {
      if (thread == 0) end_turn(of_queries.turns + sums_of(block), key_block + 1);
    }
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

/// dq from its sums; a block of threads for each block of queries.
template <typename Element, typename Tiling>
__global__ void __launch_bounds__(Tiling::threads)
    query_gradient_kernel(AttentionShape shape, BackwardOperands<Element> x, QuerySums of_queries) {
  using Sums = SumsOfBlock<Tiling>;
  const int block = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  const float* const sums =
      of_queries.sums + ((std::int64_t{b} * shape.heads + head) * gridDim.x + block) * std::int64_t{Sums::elements};
  const GlobalRows<Element> to = shape.query_rows(x.dq, b, head, block * Tiling::queries);
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp, warp = static_cast<int>(threadIdx.x) / lanes_of_warp;
  constexpr int halves =
      Sums::elements / 2 / lanes_of_warp;  // of tiles: rows of the lanes' first two elements, and of the others
  for (int half = warp; half < halves; half += Tiling::warps) {
    const int tile = half / 2, i = half % 2 * 2, m = tile / Sums::tiles_across, n = tile % Sums::tiles_across;
    const int row = m * 16 + row_of_element(lane, i), column = n * 8 + column_of_element(lane, i);
    const float pair[2] = {sums[Sums::at(m, n, i, lane)] * shape.scale, sums[Sums::at(m, n, i + 1, lane)] * shape.scale};
    if (row < to.count && column < to.width) store(to.first + row * to.stride + column, pair);
  }
}

template <typename Widths>
inline constexpr bool in_one_pass = Widths::head_width + Widths::value_width <= 320;
template <typename Widths, bool packed>
using TilingOfSums = KeyTiling<Widths, in_one_pass<Widths> ? KeyPass::dk_and_dv : KeyPass::dk, packed>;

/// What QuerySums takes, in this order.
struct QuerySumsSizes {
  std::size_t sums, turns, tickets;

  std::size_t bytes() const { return sums * sizeof(float) + (turns + tickets) * sizeof(int); }
};

template <bool packed>
QuerySumsSizes query_sums_sizes(const AttentionShape& shape) {
  QuerySumsSizes sizes{};
  with_tile_widths(shape, [&]<typename Widths>(Widths) {
    using Tiling = TilingOfSums<Widths, packed>;
    const auto in_micro_batch = static_cast<std::size_t>(shape.micro_batch);
    const std::size_t blocks = in_micro_batch * static_cast<std::size_t>(shape.heads) *
                               static_cast<std::size_t>(divide_up(shape.queries, Tiling::queries));
    sizes = {blocks * SumsOfBlock<Tiling>::elements, blocks, in_micro_batch * static_cast<std::size_t>(shape.kv_heads)};
  });
  return sizes;
}

/// The sums, as zeros.
QuerySums take_query_sums(const Queue& queue, const QuerySumsSizes& sizes, void* memory) {
  check(cudaMemsetAsync(memory, 0, sizes.bytes(), queue.stream), "cudaMemsetAsync");
  auto* const sums = static_cast<float*>(memory);
  auto* const turns = reinterpret_cast<int*>(sums + sizes.sums);
  return {sums, turns, turns + sizes.turns};
}

template <typename Tiling, typename Element, typename AnyShape>
void launch_key_gradient(const Queue& queue, const AnyShape& shape, const BackwardOperands<Element>& operands,
                         const QuerySums& sums) {
  const Grid grid{dim3(blocks_along_x(divide_up(shape.keys, Tiling::keys)), static_cast<unsigned>(shape.kv_heads),
                       static_cast<unsigned>(shape.micro_batch)),
                  dim3(Tiling::threads), Tiling::shared_bytes};
  launch("attention_backward", queue, grid, key_gradient_kernel<Element, Tiling, AnyShape>, shape, operands, sums);
}

template <typename Tiling, typename Element>
void launch_query_gradient(const Queue& queue, const AttentionShape& shape, const BackwardOperands<Element>& operands,
                           const QuerySums& sums) {
  const Grid grid{dim3(blocks_along_x(divide_up(shape.queries, Tiling::queries)), static_cast<unsigned>(shape.heads),
                       static_cast<unsigned>(shape.micro_batch)),
                  dim3(Tiling::threads)};
  launch("attention_backward", queue, grid, query_gradient_kernel<Element, Tiling>, shape, operands, sums);
}

}  // namespace

void attention_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse, dout, dq, dk, dv] = checked<9>(OpKind::attention_backward, operands, any);
  expect_types(of_one_type(q, k, v, out, dout, dq, dk, dv) && lse.dtype == DType::f32,
               "attention takes one type, and lse in fp32");
  if (run_library_attention(queue, operands, attributes, AttentionDirection::backward)) return;
  Scratch scratch(queue);
  const PackedAttentionShape any_shape =
      shape_of("attention_backward", queue, scratch, AttentionSizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes),
               attributes);
  const bool fits = fits_tensor_cores(any_shape, {q, k, v, out, dout, dq, dk, dv});

  auto* const delta = static_cast<float*>(scratch.take(static_cast<std::size_t>(lse.shape.elements()) * sizeof(float)));
  with_type(q.dtype, [&]<typename Element>(Type<Element>) {
    const AttentionShape& shape = any_shape;
    const Grid grid{dim3(blocks_along_x(divide_up(shape.queries, statistics_threads / lanes_of_warp)),
                         static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.micro_batch)),
                    dim3(statistics_threads)};
    launch("attention_backward", queue, grid, row_sums_kernel<Element>, shape, out.as<const Element>(), dout.as<const Element>(),
           delta);
  });
  if (!fits) return attention_backward_exact(queue, any_shape, q, k, v, lse, dout, delta, dq, dk, dv);
  const auto run = [&]<typename Element>(Type<Element>) {
    const BackwardOperands<Element> x{q.as<const Element>(),    k.as<const Element>(), v.as<const Element>(),
                                      dout.as<const Element>(), lse.as<const float>(), delta,
                                      dq.as<Element>(),         dk.as<Element>(),      dv.as<Element>()};
    with_packing(any_shape, [&]<typename AnyShape>(const AnyShape& shape) {
      constexpr bool packed = AnyShape::packed;
      const QuerySumsSizes sizes = query_sums_sizes<packed>(shape);
      const QuerySums sums = take_query_sums(queue, sizes, scratch.take(sizes.bytes()));
      with_tile_widths(shape, [&]<typename Widths>(Widths) {
        launch_key_gradient<TilingOfSums<Widths, packed>>(queue, shape, x, sums);
        if constexpr (!in_one_pass<Widths>) launch_key_gradient<KeyTiling<Widths, KeyPass::dv, packed>>(queue, shape, x, sums);
        launch_query_gradient<TilingOfSums<Widths, packed>>(queue, shape, x, sums);
      });
    });
  };
  q.dtype == DType::bf16 ? run(Type<Bf16>{}) : run(Type<F16>{});
}

std::size_t attention_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto shape_at = [&](std::size_t i) { return operands[i].shape; };
  constexpr std::size_t lse = 4;
  const AttentionShape shape =
      shape_of(AttentionSizes(shape_at(0), shape_at(1), shape_at(2), shape_at(3), shape_at(lse), attributes), attributes);
  const std::size_t delta = scratch_piece(static_cast<std::size_t>(shape_at(lse).elements()) * sizeof(float));
  const QuerySumsSizes sizes =
      attributes.documents.starts.empty() ? query_sums_sizes<false>(shape) : query_sums_sizes<true>(shape);
  const std::size_t sums = operands[0].dtype == DType::f32 ? 0 : scratch_piece(sizes.bytes());
  return std::max(document_scratch(shape_at(0), shape_at(1), attributes) + delta + sums,
                  library_attention_scratch(operands, attributes, AttentionDirection::backward));
}

}  // namespace tandem
