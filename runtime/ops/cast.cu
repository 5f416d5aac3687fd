#include "runtime/cuda/module/convert.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/cuda/module/reduce.h"

// To fp8 (e4m3) with one scale per tensor, chosen from the values it holds now (the "current scaling" of Transformer Engine):
// scale = largest |x| / 448, and x / scale is stored. Of two fp8 outputs the first holds x as it lies; the second, "by columns",
// is the transpose of x as a matrix, [columns_of][rows_of], as products in fp8 read both operands along k alone.
//
// Bytes: those of the cost, and to fp8 x once more, for its largest element.
namespace tandem {
namespace {

constexpr float largest_f8 = 448;

template <typename Visit>
void with_type_or_f8(DType type, Visit visit) {
  if (type == DType::f8)
    visit(Type<F8>{});
  else
    with_type(type, visit);
}

template <typename From, typename To>
struct Convert {
  static constexpr int vector = vector_of<From, To>;
  const From* x;
  To* y;
  float factor;
  const float *x_scale, *y_scale;  ///< of fp8

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[n], f = factor;
    if constexpr (std::is_same_v<From, F8>) f *= *x_scale;
    if constexpr (std::is_same_v<To, F8>) f /= *y_scale;
    load(x + i, values);
    for (int j = 0; j < n; ++j) values[j] *= f;
    store(y + i, values);
  }
};

template <typename Element>
struct Magnitude {
  using Join = Maximum;
  static constexpr int vector = vector_of<Element>;
  const Element* x;

  template <int n>
  TANDEM_DEVICE void add(std::int64_t i, float (&lanes)[n]) const {
    float values[n];
    load(x + i, values);
    for (int j = 0; j < n; ++j) lanes[j] = fmaxf(lanes[j], fabsf(values[j]));
  }
};

/// Zeros have scale 1, so that they stay zeros.
__global__ void set_scales_kernel(const float* partial, int count, float factor, float* scale, float* second_scale) {
  const float largest = factor * joined_results<Maximum>(partial, count);
  if (threadIdx.x != 0) return;
  *scale = largest > 0 ? largest / largest_f8 : 1.0F;
  if (second_scale != nullptr) *second_scale = *scale;
}

void choose_scales(const char* name, const Queue& queue, float factor, const DeviceTensor& x, float* scale, float* second_scale) {
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const Magnitude<Element> body{x.as<const Element>()};
    const int maxima = launch_partial_results(name, queue, x.shape.elements(), is_aligned(x, body.vector), body);
    launch(name, queue, {dim3(1), dim3(threads_of_reduction)}, set_scales_kernel, static_cast<const float*>(queue.scratch),
           maxima, factor < 0 ? -factor : factor, scale, second_scale);
  });
}

// By rows and by columns: a block takes a tile of 64 x 64, a thread 16 elements of a row, then 16 of a column.
constexpr int tile = 64;
constexpr int run = 16;
constexpr int runs_of_tile = tile / run;
constexpr int tile_pitch = tile + 4;  // one bank further per row, so that a column's bytes lie in different banks

struct Alignment {
  bool of_x, of_rows, of_columns;  ///< whether runs of it can be moved at once
};

template <typename Element>
__global__ void cast_both_ways_kernel(const Element* x, F8* by_rows, F8* by_columns, const float* scale, std::int64_t rows,
                                      std::int64_t columns, Alignment aligned) {
  TANDEM_SHARED(unsigned char, bytes, tile* tile_pitch);
  const int line = static_cast<int>(threadIdx.x) / runs_of_tile, first = static_cast<int>(threadIdx.x) % runs_of_tile * run;
  const std::int64_t tile_row = std::int64_t{blockIdx.x} * tile, tile_column = std::int64_t{blockIdx.y} * tile;
  const float factor = 1 / *scale;

  const std::int64_t row = tile_row + line, column = tile_column + first;
  alignas(widest_access) F8 along_row[run] = {};
  if (row < rows) {
    float values[run] = {};
    const Element* const from = x + row * columns + column;
    if (aligned.of_x && column + run <= columns) {
      load(from, values);
    } else {
      for (int i = 0; i < run && column + i < columns; ++i) values[i] = to_float(from[i]);
    }
    for (int i = 0; i < run; ++i) along_row[i] = from_float<F8>(factor * values[i]);
    F8* const to = by_rows + row * columns + column;
    if (aligned.of_rows && column + run <= columns) {
      copy_aligned<run>(to, along_row);
    } else {
      for (int i = 0; i < run && column + i < columns; ++i) to[i] = along_row[i];
    }
  }
  for (int i = 0; i < run; i += 4) copy_aligned<4>(bytes + line * tile_pitch + first + i, along_row + i);
  __syncthreads();

  const std::int64_t of_column = tile_column + line, from_row = tile_row + first;
  if (of_column >= columns) return;
  alignas(widest_access) unsigned char along_column[run];
  for (int i = 0; i < run; ++i) along_column[i] = bytes[(first + i) * tile_pitch + line];
  auto* const to = reinterpret_cast<unsigned char*>(by_columns + of_column * rows + from_row);
  if (aligned.of_columns && from_row + run <= rows) {
    copy_aligned<run>(to, along_column);
  } else {
    for (int i = 0; i < run && from_row + i < rows; ++i) to[i] = along_column[i];
  }
}

void cast_both_ways(Queue& queue, const DeviceTensor& x, const DeviceTensor& by_rows, const DeviceTensor& by_columns) {
  expect_types(by_rows.scale != nullptr && by_columns.scale != nullptr, "fp8 has a scale");
  choose_scales("cast", queue, 1, x, by_rows.scale, by_columns.scale);
  const std::int64_t rows = rows_of(x.shape), columns = columns_of(x.shape);
  const Alignment aligned{.of_x = columns % run == 0 && is_aligned(x, run),
                          .of_rows = columns % run == 0 && is_aligned(by_rows, run),
                          .of_columns = rows % run == 0 && is_aligned(by_columns, run)};
  const dim3 blocks(blocks_along_x(divide_up(rows, tile)), static_cast<unsigned>(divide_up(columns, tile)));
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    launch("cast", queue, {blocks, dim3(tile * runs_of_tile)}, cast_both_ways_kernel<Element>, x.as<const Element>(),
           by_rows.as<F8>(), by_columns.as<F8>(), static_cast<const float*>(by_rows.scale), rows, columns, aligned);
  });
}

}  // namespace

void convert(const char* name, Queue& queue, float factor, const DeviceTensor& x, const DeviceTensor& y) {
  expect_types((x.dtype != DType::f8 || x.scale != nullptr) && (y.dtype != DType::f8 || y.scale != nullptr), "fp8 has a scale");
  if (y.dtype == DType::f8) choose_scales(name, queue, factor, x, y.scale, nullptr);
  with_type_or_f8(x.dtype, [&]<typename From>(Type<From>) {
    with_type_or_f8(y.dtype, [&]<typename To>(Type<To>) {
      if constexpr (!std::is_same_v<From, F8> || !std::is_same_v<To, F8>) {
        const Convert<From, To> body{x.as<const From>(), y.as<To>(), factor, x.scale, y.scale};
        launch_elementwise(name, queue, x.shape.elements(), are_aligned({x, y}, body.vector), body);
      }
    });
  });
}

std::size_t convert_scratch_bytes(DType to) { return to == DType::f8 ? reduction_scratch_bytes : 0; }

void cast_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  check_shapes(OpKind::cast, operands, attributes);
  const DeviceTensor& x = operands.front();
  if (operands.size() == 3 && of_one_type(operands[1], operands[2]) && operands[1].dtype == DType::f8)
    return cast_both_ways(queue, x, operands[1], operands[2]);
  for (const DeviceTensor& y : operands.subspan(1)) convert("cast", queue, 1, x, y);
}

std::size_t cast_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  return convert_scratch_bytes(operands.back().dtype);
}

}  // namespace tandem
