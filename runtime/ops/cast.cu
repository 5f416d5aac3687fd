#include "runtime/cuda/module/convert.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/cuda/module/reduce.h"
#include "runtime/ops/cast_rounding.h"

// To fp8 (e4m3) with one scale per tensor, chosen from the values it holds now (the "current scaling" of Transformer Engine):
// scale = largest |x| / 448, and x / scale is stored. Of two fp8 outputs the first holds x as it lies; the second, "by columns",
// is the transpose of x as a matrix, [columns_of][rows_of], as products in fp8 read both operands along k alone.
//
// Bytes: those of the cost, and to fp8 x once more, for its largest element: of bf16 that is written both ways 6 an element where
// the cost has 4. The largest is looked for from the end of x to its beginning (reduce.h), where the cast begins: as much of x as
// the L2 cache holds by then is read from memory once.
//
// Where the recipe's blocks are no such tensor, what is written are the numbers that stand for x, in a wider type, as a host has
// them (runtime/ops/cast.h) and to the last bit the same before they are rounded to that type; see
// runtime/execution/stored_types.h.
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

// By rows and by columns: a block takes a tile of 64 x 64, a thread 16 elements of a row, then 16 of a column. Tiles are numbered
// along the rows, so that blocks begin with what the L2 cache still has of x.
constexpr int tile = 64;
constexpr int run = 16;
constexpr int runs_of_tile = tile / run;
constexpr int tile_pitch = tile + 4;  // one bank further per row, so that a column's bytes lie in different banks

struct Alignment {
  bool of_x, of_rows, of_columns;  ///< whether runs of it can be moved at once
};

template <typename Element>
__global__ void cast_both_ways_kernel(const Element* x, F8* by_rows, F8* by_columns, const float* scale, std::int64_t rows,
                                      std::int64_t columns, int tiles_across, Alignment aligned) {
  TANDEM_SHARED(unsigned char, bytes, tile* tile_pitch);
  const int line = static_cast<int>(threadIdx.x) / runs_of_tile, first = static_cast<int>(threadIdx.x) % runs_of_tile * run;
  const int number = static_cast<int>(blockIdx.x);
  const std::int64_t tile_row = std::int64_t{number / tiles_across} * tile;
  const std::int64_t tile_column = std::int64_t{number % tiles_across} * tile;
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
  const std::int64_t tiles_across = divide_up(columns, tile);
  const dim3 blocks(blocks_along_x(tiles_across * divide_up(rows, tile)));
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    launch("cast", queue, {blocks, dim3(tile * runs_of_tile)}, cast_both_ways_kernel<Element>, x.as<const Element>(),
           by_rows.as<F8>(), by_columns.as<F8>(), static_cast<const float*>(by_rows.scale), rows, columns,
           static_cast<int>(tiles_across), aligned);
  });
}

// By blocks of scales.

/// One of the tensors that lie below each other, as what comes after it is read.
template <typename From>
struct TensorToRound {
  const From* x;
  std::int64_t rows, columns;
};

/// The largest magnitude of 16 rows of a column, transformed; rows that are left over are taken as they are.
template <typename From>
struct TransformedMagnitude {
  using Join = Maximum;
  static constexpr int vector = 1;
  TensorToRound<From> tensor;

  template <int n>
  TANDEM_DEVICE void add(std::int64_t i, float (&lanes)[n]) const {
    float values[transformed_rows];
    load_column(tensor, i, values);
    for (const float value : values) lanes[0] = fmaxf(lanes[0], fabsf(value));
  }

  /// Of item i: group i / columns of rows, column i % columns. Rows that do not exist are zeros.
  static TANDEM_DEVICE void load_column(const TensorToRound<From>& tensor, std::int64_t i, float (&values)[transformed_rows]) {
    const std::int64_t first = i / tensor.columns * transformed_rows, column = i % tensor.columns;
    for (int row = 0; row < transformed_rows; ++row)
      values[row] = first + row < tensor.rows ? to_float(tensor.x[(first + row) * tensor.columns + column]) : 0.0F;
    if (first + transformed_rows <= tensor.rows) transform(values);
  }
};

__global__ void set_largest_kernel(const float* partial, int count, float* largest) {
  const float result = joined_results<Maximum>(partial, count);
  if (threadIdx.x == 0) *largest = result;
}

/// The scale of the whole tensor.
template <typename From, typename To>
struct RoundTensor {
  static constexpr int vector = 1;
  NarrowRounding rounding;
  const From* x;
  To* y;
  const float* largest;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    y[i] = from_float<To>(rounding.rounded(to_float(x[i]), rounding.scale_of(*largest, *largest)));
  }
};

/// Blocks of so many rows of a column, a thread each.
template <typename From, typename To>
struct RoundColumns {
  static constexpr int vector = 1;
  NarrowRounding rounding;
  TensorToRound<From> tensor;
  To* y;
  const float* largest;
  std::int64_t height;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t column = i % tensor.columns, first = i / tensor.columns * height;
    const std::int64_t end = smaller(first + height, tensor.rows);
    float of_block = 0;
    for (std::int64_t row = first; row < end; ++row)
      of_block = fmaxf(of_block, fabsf(to_float(tensor.x[row * tensor.columns + column])));
    const float scale = rounding.scale_of(of_block, *largest);
    for (std::int64_t row = first; row < end; ++row)
      y[row * tensor.columns + column] =
          from_float<To>(rounding.rounded(to_float(tensor.x[row * tensor.columns + column]), scale));
  }
};

/// The same of 16 rows that are transformed first.
template <typename From, typename To>
struct RoundTransformed {
  static constexpr int vector = 1;
  NarrowRounding rounding;
  TensorToRound<From> tensor;
  To* y;
  const float* largest;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[transformed_rows], of_block = 0;
    TransformedMagnitude<From>::load_column(tensor, i, values);
    for (const float value : values) of_block = fmaxf(of_block, fabsf(value));
    const float scale = rounding.scale_of(of_block, *largest);
    const std::int64_t column = i % tensor.columns, first = i / tensor.columns * transformed_rows;
    for (int row = 0; row < transformed_rows && first + row < tensor.rows; ++row)
      y[(first + row) * tensor.columns + column] = from_float<To>(rounding.rounded(values[row], scale));
  }
};

/// Blocks of `block.rows` x `block.columns`, a block of threads each.
template <typename From, typename To>
__global__ void round_blocks_kernel(NarrowRounding rounding, TensorToRound<From> tensor, To* y, const float* largest,
                                    BlockShape block) {
  const std::int64_t first_row = std::int64_t{blockIdx.x} * block.rows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * block.columns;
  const std::int64_t rows = smaller(block.rows, tensor.rows - first_row);
  const std::int64_t columns = smaller(block.columns, tensor.columns - first_column);
  const auto place_of = [&](std::int64_t i) { return (first_row + i / columns) * tensor.columns + first_column + i % columns; };
  float mine = 0;
  for (std::int64_t i = threadIdx.x; i < rows * columns; i += blockDim.x)
    mine = fmaxf(mine, fabsf(to_float(tensor.x[place_of(i)])));
  const float scale = rounding.scale_of(block_max(mine), *largest);
  for (std::int64_t i = threadIdx.x; i < rows * columns; i += blockDim.x) {
    const std::int64_t at = place_of(i);
    y[at] = from_float<To>(rounding.rounded(to_float(tensor.x[at]), scale));
  }
}

/// Blocks of so many columns of a row, a warp each.
template <typename From, typename To>
__global__ void round_rows_kernel(NarrowRounding rounding, TensorToRound<From> tensor, To* y, const float* largest, int width,
                                  std::int64_t blocks) {
  const std::int64_t block = std::int64_t{blockIdx.x} * (blockDim.x / lanes_of_warp) + threadIdx.x / lanes_of_warp;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  if (block >= blocks) return;  // all lanes of a warp together
  const std::int64_t along_row = (tensor.columns + width - 1) / width;
  const std::int64_t first = block / along_row * tensor.columns + block % along_row * width;
  const std::int64_t left = tensor.columns - block % along_row * width;
  const int count = static_cast<int>(smaller<std::int64_t>(width, left));
  float of_block = 0;
  for (int i = lane; i < count; i += lanes_of_warp) of_block = fmaxf(of_block, fabsf(to_float(tensor.x[first + i])));
  const float scale = rounding.scale_of(warp_max(of_block), *largest);
  for (int i = lane; i < count; i += lanes_of_warp)
    y[first + i] = from_float<To>(rounding.rounded(to_float(tensor.x[first + i]), scale));
}

/// One output of one tensor. `x` and `y` may be the same.
template <typename From, typename To>
void round_tensor(const Queue& queue, const CastAttributes& attributes, bool by_column, const TensorToRound<From>& tensor,
                  To* y) {
  const NarrowRounding rounding(attributes, by_column);
  const BlockShape block = block_of(attributes.scaling, by_column);
  const std::int64_t elements = tensor.rows * tensor.columns;
  if (elements == 0) return;
  const bool transforms = by_column && attributes.transforms;
  if (transforms && block.rows != transformed_rows) throw std::logic_error("a cast transforms other rows than share a scale");
  const std::int64_t groups = divide_up(tensor.rows, transformed_rows) * tensor.columns;
  auto* const largest = reinterpret_cast<float*>(static_cast<std::byte*>(queue.scratch) + reduction_scratch_bytes);
  const int maxima = transforms ? launch_partial_results("cast", queue, groups, false, TransformedMagnitude<From>{tensor})
                                : launch_partial_results("cast", queue, elements, false, Magnitude<From>{tensor.x});
  launch("cast", queue, {dim3(1), dim3(threads_of_reduction)}, set_largest_kernel, static_cast<const float*>(queue.scratch),
         maxima, largest);
  if (transforms)
    return launch_elementwise("cast", queue, groups, false, RoundTransformed<From, To>{rounding, tensor, y, largest});
  if (block.rows == 0)
    return launch_elementwise("cast", queue, elements, false, RoundTensor<From, To>{rounding, tensor.x, y, largest});
  if (block.columns == 1) {
    const std::int64_t blocks = divide_up(tensor.rows, block.rows) * tensor.columns;
    return launch_elementwise("cast", queue, blocks, false, RoundColumns<From, To>{rounding, tensor, y, largest, block.rows});
  }
  if (block.rows == 1) {
    constexpr int warps = 8;
    const std::int64_t blocks = tensor.rows * divide_up(tensor.columns, block.columns);
    return launch("cast", queue, {dim3(blocks_along_x(divide_up(blocks, warps))), dim3(warps * lanes_of_warp)},
                  round_rows_kernel<From, To>, rounding, tensor, y, static_cast<const float*>(largest),
                  static_cast<int>(block.columns), blocks);
  }
  constexpr unsigned threads = 256;
  const dim3 blocks(blocks_along_x(divide_up(tensor.rows, block.rows)),
                    static_cast<unsigned>(divide_up(tensor.columns, block.columns)));
  launch("cast", queue, {blocks, dim3(threads)}, round_blocks_kernel<From, To>, rounding, tensor, y,
         static_cast<const float*>(largest), block);
}

void round_into(const Queue& queue, const CastAttributes& attributes, bool by_column, const DeviceTensor& x,
                const DeviceTensor& y) {
  const std::int64_t columns = columns_of(x.shape);
  std::vector<std::int64_t> rows(attributes.rows.begin(), attributes.rows.end());
  if (rows.empty()) rows.push_back(rows_of(x.shape));
  with_type(x.dtype, [&]<typename From>(Type<From>) {
    with_type(y.dtype, [&]<typename To>(Type<To>) {
      std::int64_t first = 0;
      for (const std::int64_t of_tensor : rows) {
        round_tensor(queue, attributes, by_column, TensorToRound<From>{x.as<const From>() + first * columns, of_tensor, columns},
                     y.as<To>() + first * columns);
        first += of_tensor;
      }
    });
  });
}

/// As cast_host.
void cast_rounded(Queue& queue, std::span<const DeviceTensor> operands, const CastAttributes& attributes) {
  if (attributes.in_place) {
    if (operands.size() > 1) round_into(queue, attributes, true, operands.back(), operands.front());
    return round_into(queue, attributes, false, operands.back(), operands.back());
  }
  for (std::size_t i = 1; i < operands.size(); ++i) round_into(queue, attributes, i == 2, operands.front(), operands[i]);
}

/// Whether the cast writes the numbers of a narrow type in a wider one.
template <typename Operand>
bool writes_wider(std::span<const Operand> operands, const OpAttributes& any) {
  const auto* attributes = std::get_if<CastAttributes>(&any);
  return attributes != nullptr && attributes->to != NarrowType::none &&
         std::ranges::all_of(operands, [](const Operand& operand) { return operand.dtype != DType::f8; });
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
  if (writes_wider(operands, attributes)) return cast_rounded(queue, operands, std::get<CastAttributes>(attributes));
  if (const auto* cast = std::get_if<CastAttributes>(&attributes); cast != nullptr && cast->in_place) {
    if (operands.size() > 1) convert("cast", queue, 1, operands.back(), operands.front());
    return;
  }
  const DeviceTensor& x = operands.front();
  if (operands.size() == 3 && of_one_type(operands[1], operands[2]) && operands[1].dtype == DType::f8)
    return cast_both_ways(queue, x, operands[1], operands[2]);
  for (const DeviceTensor& y : operands.subspan(1)) convert("cast", queue, 1, x, y);
}

std::size_t cast_scratch(std::span<const OperandType> operands, const OpAttributes& attributes) {
  if (writes_wider(operands, attributes)) return reduction_scratch_bytes + sizeof(float);
  return convert_scratch_bytes(operands.back().dtype);
}

}  // namespace tandem
