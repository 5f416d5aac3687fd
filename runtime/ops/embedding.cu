#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// The lookup moves the bytes of its cost. Its gradient is summed by one block per token that occurs, in the order in which it
// occurs; beside the bytes of the cost it writes 8 and reads some bytes per row of the table, and a token that occurs more than
// once has all token ids after its first read again, from the L2 cache.
namespace tandem {
namespace {

template <typename Element>
struct LookUp {
  static constexpr int vector = vector_of<Element>;
  const std::int32_t* ids;
  const Element* table;
  Element* out;
  std::int64_t vocab_start, vocabulary, width;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    const std::int64_t token = ids[row] - vocab_start;
    alignas(widest_access) Element values[n];
    if (token >= 0 && token < vocabulary) {
      copy_aligned<n* static_cast<int>(sizeof(Element))>(values, table + token * width + column);
    } else {
      for (Element& value : values) value = from_float<Element>(0);
    }
    copy_aligned<n* static_cast<int>(sizeof(Element))>(out + row * width + column, values);
  }
};

/// Where a row of the table occurs among the ids.
struct Occurrences {
  int first, count;
};

struct ClearOccurrences {
  static constexpr int vector = 1;
  Occurrences* occurrences;
  int ids;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row) const {
    occurrences[row] = {ids, 0};
  }
};

struct CountOccurrences {
  static constexpr int vector = 1;
  const std::int32_t* ids;
  Occurrences* occurrences;
  std::int64_t vocab_start, vocabulary;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t row = ids[i] - vocab_start;
    if (row < 0 || row >= vocabulary) return;
    atomicMin(&occurrences[row].first, static_cast<int>(i));
    atomicAdd(&occurrences[row].count, 1);
  }
};

constexpr int threads_of_token = 256;
constexpr int warps_of_token = threads_of_token / lanes_of_warp;
constexpr int ids_of_warp = 256;  // looked through before those found are added up
constexpr int ids_at_once = warps_of_token * ids_of_warp;

/// Finds the occurrences of `id` among ids [begin, begin + ids_at_once): warp w those of its ids_of_warp, in their order, into
/// found[w][...], and how many into counts[w].
TANDEM_DEVICE void find(const std::int32_t* ids, int begin, int end, std::int32_t id, int (*found)[ids_of_warp], int* counts) {
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp, lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  int count = 0;
#pragma unroll
  for (int step = 0; step < ids_of_warp; step += lanes_of_warp) {
    const int i = begin + warp * ids_of_warp + step + lane;
    const bool is_it = i < end && ids[i] == id;
    const unsigned lanes = __ballot_sync(every_lane, is_it);
    if (is_it) found[warp][count + __popc(lanes & ((1U << lane) - 1))] = i;
    count += __popc(lanes);
  }
  if (lane == 0) counts[warp] = count;
}

/// Block (i, j): if id i is the first of its kind, adds all gradients of its kind to its row of the table, in the j-th part of
/// the columns.
template <int vector, typename Element, typename Gradient>
__global__ void __launch_bounds__(threads_of_token)
    add_gradients_kernel(const std::int32_t* ids, const Element* dout, Gradient* dtable, const Occurrences* occurrences,
                         int tokens, std::int64_t vocab_start, std::int64_t vocabulary, std::int64_t width) {
  using OfWarp = int[ids_of_warp];
  TANDEM_SHARED(OfWarp, found, warps_of_token);
  TANDEM_SHARED(int, counts, warps_of_token);
  const int token = static_cast<int>(blockIdx.x);
  const std::int32_t id = ids[token];
  const std::int64_t row = id - vocab_start;
  if (row < 0 || row >= vocabulary) return;
  const Occurrences of_row = occurrences[row];
  if (of_row.first != token) return;

  const std::int64_t column = (std::int64_t{blockIdx.y} * threads_of_token + threadIdx.x) * vector;
  float sum[vector] = {}, values[vector];
  const auto add = [&](int i) {
    if (column >= width) return;
    load(dout + i * width + column, values);
    for (int j = 0; j < vector; ++j) sum[j] += values[j];
  };
  add(token);
  int missing = of_row.count - 1;
  for (int begin = token + 1; missing > 0; begin += ids_at_once) {
    find(ids, begin, tokens, id, found, counts);
    __syncthreads();
    for (int warp = 0; warp < warps_of_token; ++warp) {
      for (int i = 0; i < counts[warp]; ++i) add(found[warp][i]);
      missing -= counts[warp];
    }
    __syncthreads();  // before what was found is overwritten
  }
  if (column >= width) return;
  load(dtable + row * width + column, values);
  for (int j = 0; j < vector; ++j) sum[j] += values[j];
  store(dtable + row * width + column, sum);
}

}  // namespace

void embedding_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [ids, table, out] = checked<3>(OpKind::embedding, operands, any);
  expect_types(of_one_type(table, out) && ids.dtype == DType::i32, "embedding looks rows up as they are, by int32");
  const std::int64_t width = columns_of(out.shape);
  with_type(table.dtype, [&]<typename Element>(Type<Element>) {
    const LookUp<Element> body{.ids = ids.template as<const std::int32_t>(),
                               .table = table.template as<const Element>(),
                               .out = out.template as<Element>(),
                               .vocab_start = std::get<EmbeddingAttributes>(any).vocab_start,
                               .vocabulary = rows_of(table.shape),
                               .width = width};
    const bool aligned = width % body.vector == 0 && are_aligned({table, out}, body.vector);
    launch_by_rows("embedding", queue, rows_of(out.shape), width, aligned, body);
  });
}

void embedding_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [ids, dout, dtable] = checked<3>(OpKind::embedding_backward, operands, any);
  expect_types(ids.dtype == DType::i32, "tokens are int32");
  const std::int64_t tokens = ids.shape.elements(), vocabulary = rows_of(dtable.shape), width = columns_of(dout.shape);
  const std::int64_t vocab_start = std::get<EmbeddingAttributes>(any).vocab_start;
  const auto* const id = ids.as<const std::int32_t>();
  auto* const occurrences = static_cast<Occurrences*>(queue.scratch);
  launch_elementwise("embedding_backward", queue, vocabulary, true, ClearOccurrences{occurrences, static_cast<int>(tokens)});
  launch_elementwise("embedding_backward", queue, tokens, true, CountOccurrences{id, occurrences, vocab_start, vocabulary});
  with_type(dout.dtype, [&]<typename Element>(Type<Element>) {
    with_type(dtable.dtype, [&]<typename Gradient>(Type<Gradient>) {
      constexpr int vector = vector_of<Element>;
      const bool aligned = width % vector == 0 && are_aligned({dout, dtable}, vector);
      const dim3 blocks(blocks_along_x(tokens),
                        static_cast<unsigned>(divide_up(width, std::int64_t{threads_of_token} * (aligned ? vector : 1))));
      launch("embedding_backward", queue, {blocks, dim3(threads_of_token)},
             aligned ? add_gradients_kernel<vector, Element, Gradient> : add_gradients_kernel<1, Element, Gradient>, id,
             dout.template as<const Element>(), dtable.template as<Gradient>(), occurrences, static_cast<int>(tokens),
             vocab_start, vocabulary, width);
    });
  });
}

std::size_t embedding_backward_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  return static_cast<std::size_t>(rows_of(operands.back().shape)) * sizeof(Occurrences);
}

}  // namespace tandem
