#include <algorithm>

#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/library_attention.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_device.h"
#include "runtime/ops/attention_exact_device.h"

// FlashAttention-2 (Dao 2023, algorithm 1) on mma.sync: a block of threads keeps a block of queries, and goes over the blocks of
// keys that these see. The scores stay in registers: the result of q k^T is, rounded, the left operand of p v. While one of k and
// v is multiplied, the other is on its way.
//
// Blocks of queries start with the last, which see the most keys, so that the short ones fill the gaps at the end.
namespace tandem {
namespace {

template <typename Widths, bool packed>
struct ForwardTiling : Widths {
  static constexpr int m_tiles = Widths::value_width <= 128 ? 2 : 1;  // of 16 queries, by warp: as many as its registers hold
  static constexpr int warps = 8 / m_tiles, threads = warps * lanes_of_warp;
  static constexpr int queries = warps * m_tiles * 16, keys = Widths::value_width != 128 ? 64 : packed ? 16 : 32;
  static constexpr std::size_t shared_elements =
      (queries + keys) * std::size_t{Widths::head_width} + keys * std::size_t{Widths::value_width};
};

/// Of the two rows of each tile of which a lane holds elements: the largest score so far, and the sum of its own elements'
/// exp(score - largest).
template <int m_tiles>
struct OnlineSoftmax {
  float largest[m_tiles][2], sum[m_tiles][2];

  TANDEM_DEVICE OnlineSoftmax() {
    for (int m = 0; m < m_tiles; ++m)
      for (int pair = 0; pair < 2; ++pair) {
        largest[m][pair] = -INFINITY;
        sum[m][pair] = 0;
      }
  }

  /// Turns scores into probabilities, but for the division by the sum, and brings the output to the new largest score.
  template <int key_tiles, int value_tiles>
  TANDEM_DEVICE void update(float (&scores)[m_tiles][key_tiles][4], float (&output)[m_tiles][value_tiles][4], float scale_log2) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        float top = largest[m][pair];
#pragma unroll
        for (int n = 0; n < key_tiles; ++n) top = fmaxf(top, fmaxf(scores[m][n][pair * 2], scores[m][n][pair * 2 + 1]));
        top = largest_of_row(top);
        const float reference = top == -INFINITY ? 0.0F : top * scale_log2;  // infinities have no difference
        const float shrink = fast_exp2(largest[m][pair] * scale_log2 - reference);
        largest[m][pair] = top;
        float added = 0;
#pragma unroll
        for (int n = 0; n < key_tiles; ++n)
#pragma unroll
          for (int i = pair * 2; i < pair * 2 + 2; ++i) {
            scores[m][n][i] = fast_exp2(scores[m][n][i] * scale_log2 - reference);
            added += scores[m][n][i];
          }
        sum[m][pair] = sum[m][pair] * shrink + added;
#pragma unroll
        for (int n = 0; n < value_tiles; ++n) {
          output[m][n][pair * 2] *= shrink;
          output[m][n][pair * 2 + 1] *= shrink;
        }
      }
  }

  /// Divides the output by the sums; returns the log of them by `log_sum(m, pair, value)`.
  template <int value_tiles, typename LogSum>
  TANDEM_DEVICE void finish(float (&output)[m_tiles][value_tiles][4], float scale, LogSum log_sum) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const float total = sum_of_row(sum[m][pair]);
        const float normaliser = total > 0 ? 1 / total : 0.0F;
#pragma unroll
        for (int n = 0; n < value_tiles; ++n) {
          output[m][n][pair * 2] *= normaliser;
          output[m][n][pair * 2 + 1] *= normaliser;
        }
        log_sum(m, pair, total > 0 ? largest[m][pair] * scale + logf(total) : -INFINITY);
      }
  }

 private:
  // Four neighbouring lanes hold a row.
  TANDEM_DEVICE static float largest_of_row(float value) {
    value = fmaxf(value, __shfl_xor_sync(every_lane, value, 1));
    return fmaxf(value, __shfl_xor_sync(every_lane, value, 2));
  }
  TANDEM_DEVICE static float sum_of_row(float value) {
    value += __shfl_xor_sync(every_lane, value, 1);
    return value + __shfl_xor_sync(every_lane, value, 2);
  }
};

template <typename Element, typename Tiling, typename AnyShape>
__global__ void __launch_bounds__(Tiling::threads)
    attention_kernel(AnyShape shape, const Element* q, const Element* k, const Element* v, Element* out, float* lse) {
  TANDEM_DYNAMIC_SHARED(shared);
  const SharedTile<Element, Tiling::head_width> queries{reinterpret_cast<Element*>(shared)};
  const SharedTile<Element, Tiling::head_width> keys{queries.data + Tiling::queries * Tiling::head_width};
  const SharedTile<Element, Tiling::value_width> values{keys.data + Tiling::keys * Tiling::head_width};

  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const int row = static_cast<int>(threadIdx.x) / lanes_of_warp * Tiling::m_tiles * 16;  // the warp's first
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

  float output[Tiling::m_tiles][Tiling::value_width / 8][4] = {};
  OnlineSoftmax<Tiling::m_tiles> softmax;
  int first_key = next_seen(0);
  copy_rows_async<Tiling::queries, Tiling::threads>(queries, shape.query_rows(q, b, head, first_query));
  if (first_key < shape.keys) copy_rows_async<Tiling::keys, Tiling::threads>(keys, shape.key_rows(k, b, kv_head, first_key));
  copy_async_commit();
  while (first_key < shape.keys) {
    copy_async_wait<0>();
    __syncthreads();  // k has arrived; the v before it is no longer read
    copy_rows_async<Tiling::keys, Tiling::threads>(values, shape.value_rows(v, b, kv_head, first_key));
    copy_async_commit();
    float scores[Tiling::m_tiles][Tiling::keys / 8][4] = {};
    add_product(scores, queries, row, keys, lane);

    const int next_key = next_seen(first_key + Tiling::keys);
    copy_async_wait<0>();
    __syncthreads();  // v has arrived; k is no longer read
    if (next_key < shape.keys) copy_rows_async<Tiling::keys, Tiling::threads>(keys, shape.key_rows(k, b, kv_head, next_key));
    copy_async_commit();
    if (shape.softcap > 0) cap_scores(shape, scores);
    if (first_key + Tiling::keys > shape.keys || visibility(first_key) == Visibility::some)
      replace_where(scores, -INFINITY, lane, [&](int of_row, int of_column) {
        const int key = first_key + of_column;  // one beyond the last is hidden
        return key >= shape.keys || !shape.sees(b, first_query + row + of_row, key);
      });
    softmax.update(scores, output, shape.scale * log2_of_e);
    add_product(output, scores, values, lane);
    first_key = next_key;
  }

  softmax.finish(output, shape.scale, [&](int m, int pair, float log_sum) {
    const int query = first_query + row + m * 16 + row_of_element(lane, pair * 2);
    if (lane % 4 == 0 && query < end_query) lse[shape.statistics_of(b, head) + query] = log_sum;
  });
  copy_async_wait<0>();
  __syncthreads();  // where no key is seen, q may still be arriving
  store_rows(queries, row, output, shape.output_rows(out, b, head, first_query), lane);
}

template <typename Element, typename Widths, typename AnyShape>
void launch_attention(const Queue& queue, const AnyShape& shape, const DeviceTensor& q, const DeviceTensor& k,
                      const DeviceTensor& v, const DeviceTensor& out, const DeviceTensor& lse) {
  using Tiling = ForwardTiling<Widths, AnyShape::packed>;
  const Grid grid{dim3(blocks_along_x(divide_up(shape.queries, Tiling::queries)), static_cast<unsigned>(shape.heads),
                       static_cast<unsigned>(shape.micro_batch)),
                  dim3(Tiling::threads), Tiling::shared_elements * sizeof(Element)};
  launch("attention", queue, grid, attention_kernel<Element, Tiling, AnyShape>, shape, q.as<const Element>(),
         k.as<const Element>(), v.as<const Element>(), out.as<Element>(), lse.as<float>());
}

}  // namespace

void attention_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse] = checked<5>(OpKind::attention, operands, any);
  expect_types(of_one_type(q, k, v, out) && lse.dtype == DType::f32, "attention takes one type, and lse in fp32");
  if (run_library_attention(queue, operands, attributes, AttentionDirection::forward)) return;
  Scratch scratch(queue);
  const PackedAttentionShape any_shape = shape_of(
      "attention", queue, scratch, AttentionSizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes), attributes);
  if (!fits_tensor_cores(any_shape, {q, k, v, out})) return attention_exact(queue, any_shape, q, k, v, out, lse);
  const auto run = [&]<typename Element>(Type<Element>) {
    with_packing(any_shape, [&](const auto& shape) {
      with_tile_widths(shape,
                       [&]<typename Widths>(Widths) { launch_attention<Element, Widths>(queue, shape, q, k, v, out, lse); });
    });
  };
  q.dtype == DType::bf16 ? run(Type<Bf16>{}) : run(Type<F16>{});
}

std::size_t attention_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  return std::max(document_scratch(operands[0].shape, operands[1].shape, attributes),
                  library_attention_scratch(operands, attributes, AttentionDirection::forward));
}

}  // namespace tandem
