#include <vector>

#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// Each moves the bytes of its cost, but for 8 bytes per row sent, which mark the rows that somebody took (permute and
// combine_backward), and dy once more from the cache for each choice (combine_backward).
namespace tandem {
namespace {

/// A token's row into the rows of its choices, which it marks as taken.
template <typename Element>
struct Permute {
  static constexpr int vector = vector_of<Element>;
  const Element* x;
  const std::int32_t* slots;
  Element* rows;
  int* taken;
  int choices;
  std::int64_t width;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t token, std::int64_t column) const {
    constexpr int bytes = n * static_cast<int>(sizeof(Element));
    alignas(widest_access) Element values[n];
    copy_aligned<bytes>(values, x + token * width + column);
    for (int j = 0; j < choices; ++j) {
      const std::int32_t slot = slots[token * choices + j];
      if (slot < 0) continue;
      copy_aligned<bytes>(rows + slot * width + column, values);
      if (column == 0) taken[slot] = 1;
    }
  }
};

/// Where the rows of a token's choices lie, and where their sum.
template <typename Element>
struct Combination {
  const Element* rows;
  const std::int32_t* slots;
  const float* gates;  ///< null: 1
  Element* y;
  std::int64_t tokens;
  int choices;
  std::int64_t width;
};

constexpr int vectors_of_combination = 2;  // of a thread

/// The sum of a token's rows, each weighted by its gate where there are gates. A thread has the rows of up to `at_once` choices
/// under way at once, at each of its places.
template <int vector, int at_once, typename Element>
__global__ void __launch_bounds__(threads_of_elementwise) combine_kernel(Combination<Element> c) {
  constexpr int places = vectors_of_combination, bytes = vector * static_cast<int>(sizeof(Element));
  const std::int64_t token = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (token >= c.tokens) return;
  const std::int64_t stride = std::int64_t{blockDim.x} * vector;
  const std::int64_t column = blockIdx.y * stride * places + std::int64_t{threadIdx.x} * vector;
  float sums[places][vector] = {};
  for (int first = 0; first < c.choices; first += at_once) {
    std::int32_t slots[at_once];
    float weights[at_once];
    alignas(widest_access) Element raw[places][at_once][vector];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const std::int64_t choice = token * c.choices + first + j;
      const bool there = first + j < c.choices;
      slots[j] = there ? c.slots[choice] : -1;
      weights[j] = there && c.gates != nullptr ? c.gates[choice] : 1.0F;
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j)
#pragma unroll
      for (int i = 0; i < places; ++i)
        if (slots[j] >= 0 && column + i * stride < c.width)
          copy_aligned<bytes>(raw[i][j], c.rows + slots[j] * c.width + column + i * stride);
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      if (slots[j] < 0) continue;
#pragma unroll
      for (int i = 0; i < places; ++i)
#pragma unroll
        for (int k = 0; k < vector; ++k) sums[i][k] += weights[j] * to_float(raw[i][j][k]);
    }
  }
#pragma unroll
  for (int i = 0; i < places; ++i)
    if (column + i * stride < c.width) store(c.y + token * c.width + column + i * stride, sums[i]);
}

constexpr int threads_of_token = 256;

template <int vector, typename Element>
__global__ void __launch_bounds__(threads_of_token)
    combine_backward_kernel(const Element* dy, const Element* rows, const std::int32_t* slots, const float* gates, Element* drows,
                            float* dgates, int* taken, int choices, std::int64_t width) {
  const Element* const gradient = dy + blockIdx.x * width;
  for (int j = 0; j < choices; ++j) {
    const std::int64_t choice = std::int64_t{blockIdx.x} * choices + j;
    const std::int32_t slot = slots[choice];
    float dgate = 0;
    if (slot >= 0) {
      const float gate = gates[choice];
      for (std::int64_t i = std::int64_t{threadIdx.x} * vector; i < width; i += threads_of_token * vector) {
        float values[vector], row[vector];
        load(gradient + i, values);
        load(rows + slot * width + i, row);
        for (int k = 0; k < vector; ++k) {
          dgate += values[k] * row[k];
          values[k] *= gate;
        }
        store(drows + slot * width + i, values);
      }
    }
    dgate = block_sum(dgate);
    if (threadIdx.x != 0) continue;
    dgates[choice] = dgate;
    if (slot >= 0) taken[slot] = 1;
  }
}

struct ClearMarks {
  static constexpr int vector = 1;
  int* taken;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row) const {
    taken[row] = 0;
  }
};

/// Zeros into the rows that nobody took: each warp looks at 32 of them.
template <int vector, typename Element>
__global__ void clear_rows_kernel(Element* rows, const int* taken, std::int64_t count, std::int64_t width) {
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const std::int64_t first = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes_of_warp * lanes_of_warp;
  unsigned free = __ballot_sync(every_lane, first + lane < count && taken[first + lane] == 0);
  const float zeros[vector] = {};
  for (; free != 0; free &= free - 1) {
    Element* const row = rows + (first + __ffs(static_cast<int>(free)) - 1) * width;
    for (std::int64_t i = lane * vector; i < width; i += lanes_of_warp * vector) store(row + i, zeros);
  }
}

template <typename Element>
void clear_free_rows(const char* name, const Queue& queue, const DeviceTensor& rows, const int* taken, bool aligned) {
  constexpr int vector = vector_of<Element>;
  const std::int64_t count = rows_of(rows.shape);
  launch(name, queue, {dim3(blocks_along_x(divide_up(count, threads_of_elementwise))), dim3(threads_of_elementwise)},
         aligned ? clear_rows_kernel<vector, Element> : clear_rows_kernel<1, Element>, rows.as<Element>(), taken, count,
         columns_of(rows.shape));
}

void clear_marks(const char* name, const Queue& queue, const DeviceTensor& rows) {
  launch_elementwise(name, queue, rows_of(rows.shape), true, ClearMarks{static_cast<int*>(queue.scratch)});
}

/// `gates`: null for none.
void combine(const char* name, const Queue& queue, const DeviceTensor& rows, const DeviceTensor& slots, const float* gates,
             const DeviceTensor& y) {
  expect_types(of_one_type(rows, y) && slots.dtype == DType::i32, "tokens and their rows are of one type, slots int32");
  with_type(y.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>, few = 2, many = 4;
    const Combination<Element> c{rows.as<const Element>(),
                                 slots.as<const std::int32_t>(),
                                 gates,
                                 y.as<Element>(),
                                 rows_of(y.shape),
                                 static_cast<int>(columns_of(slots.shape)),
                                 columns_of(y.shape)};
    const bool aligned = c.width % vector == 0 && are_aligned({rows, y}, vector);
    const std::int64_t vectors = c.width / (aligned ? vector : 1);
    const unsigned along_row = threads_along_row(divide_up(vectors, vectors_of_combination));
    const unsigned along_column = threads_of_elementwise / along_row;
    const dim3 blocks(blocks_along_x(divide_up(c.tokens, along_column)),
                      static_cast<unsigned>(divide_up(vectors, std::int64_t{along_row} * vectors_of_combination)));
    auto* const by_vectors = c.choices <= few ? combine_kernel<vector, few, Element> : combine_kernel<vector, many, Element>;
    launch(name, queue, {blocks, dim3(along_row, along_column)}, aligned ? by_vectors : combine_kernel<1, many, Element>, c);
  });
}

template <typename Element>
struct ClearPadding {
  static constexpr int vector = vector_of<Element>;
  Element* rows;
  unsigned padding, block;  ///< rows of a block that are padding, at its end, and all of them
  std::int64_t width;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i, std::int64_t column) const {
    const auto row = static_cast<unsigned>(i);
    const float zeros[n] = {};
    store(rows + (std::int64_t{row / padding} * block + block - padding + row % padding) * width + column, zeros);
  }
};

}  // namespace

void permute_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, slots, rows] = checked<3>(OpKind::permute, operands, any);
  expect_types(of_one_type(x, rows) && slots.dtype == DType::i32, "tokens and their rows are of one type, slots int32");
  const std::int64_t width = columns_of(x.shape);
  auto* const taken = static_cast<int*>(queue.scratch);
  clear_marks("permute", queue, rows);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const Permute<Element> body{x.template as<const Element>(),
                                slots.template as<const std::int32_t>(),
                                rows.template as<Element>(),
                                taken,
                                static_cast<int>(columns_of(slots.shape)),
                                width};
    const bool aligned = width % body.vector == 0 && are_aligned({x, rows}, body.vector);
    launch_by_rows("permute", queue, rows_of(x.shape), width, aligned, body);
    clear_free_rows<Element>("permute", queue, rows, taken, aligned);
  });
}

std::size_t permute_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  return static_cast<std::size_t>(rows_of(operands[2].shape)) * sizeof(int);
}

void permute_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [drows, slots, dx] = checked<3>(OpKind::permute_backward, operands, any);
  combine("permute_backward", queue, drows, slots, nullptr, dx);
}

void combine_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [rows, slots, gates, y] = checked<4>(OpKind::combine, operands, any);
  expect_types(gates.dtype == DType::f32, "gates are fp32");
  combine("combine", queue, rows, slots, gates.as<const float>(), y);
}

void combine_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [dy, rows, slots, gates, drows, dgates] = checked<6>(OpKind::combine_backward, operands, any);
  expect_types(of_one_type(dy, rows, drows) && slots.dtype == DType::i32, "tokens and their rows are of one type, slots int32");
  expect_types(gates.dtype == DType::f32 && dgates.dtype == DType::f32, "gates are fp32");
  const std::int64_t width = columns_of(dy.shape);
  auto* const taken = static_cast<int*>(queue.scratch);
  clear_marks("combine_backward", queue, drows);
  with_type(dy.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const bool aligned = width % vector == 0 && are_aligned({dy, rows, drows}, vector);
    launch("combine_backward", queue, {dim3(blocks_along_x(rows_of(dy.shape))), dim3(threads_of_token)},
           aligned ? combine_backward_kernel<vector, Element> : combine_backward_kernel<1, Element>,
           dy.template as<const Element>(), rows.template as<const Element>(), slots.template as<const std::int32_t>(),
           gates.template as<const float>(), drows.template as<Element>(), dgates.template as<float>(), taken,
           static_cast<int>(columns_of(slots.shape)), width);
    clear_free_rows<Element>("combine_backward", queue, drows, taken, aligned);
  });
}

std::size_t combine_backward_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  return static_cast<std::size_t>(rows_of(operands[1].shape)) * sizeof(int);
}

void regroup_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RegroupAttributes>(any);
  const auto [x, y] = checked<2>(OpKind::regroup, operands, any);
  const std::int64_t width = columns_of(x.shape), blocks = attributes.blocks;
  std::vector<Box> boxes;
  std::int64_t by_expert = 0, before = 0;  // elements so far; of earlier experts in a block
  for (const std::int64_t rows : attributes.rows) {
    const std::int64_t of_block = rows * width;
    const BoxSide expert{by_expert, {0, of_block}}, source{before, {0, attributes.block * width}};
    if (rows > 0)
      boxes.push_back(
          {&x, &y, {1, blocks, of_block}, attributes.inverse ? expert : source, attributes.inverse ? source : expert});
    by_expert += blocks * of_block;
    before += of_block;
  }
  copy_boxes("regroup", queue, boxes);
  const std::int64_t padding = attributes.block - before / width;
  if (!attributes.inverse || padding == 0) return;
  with_type(y.dtype, [&]<typename Element>(Type<Element>) {
    const ClearPadding<Element> body{y.template as<Element>(), static_cast<unsigned>(padding),
                                     static_cast<unsigned>(attributes.block), width};
    launch_by_rows("regroup", queue, blocks * padding, width, width % body.vector == 0 && is_aligned(y, body.vector), body);
  });
}

}  // namespace tandem
