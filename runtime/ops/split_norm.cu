#include <algorithm>

#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/occupancy.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/column_sum_device.h"
#include "runtime/ops/row_team_device.h"
#include "runtime/ops/row_walk_device.h"
#include "runtime/ops/sigmoid_device.h"
#include "runtime/ops/split_norm.h"

// Each moves the bytes of its cost. A team of threads sums a row. What is made of the sums needs no further ones, so that in the
// backward a thread keeps to its columns and goes down the rows of a slice, summing the weight's gradient as it goes; some MB of
// partial sums move beside.
namespace tandem {
namespace {

template <typename Element>
struct SplitNormed {
  const Element* x;
  const float* squares;
  const Element *weight, *gate;
  std::int64_t columns;
  float width, epsilon;

  TANDEM_DEVICE float inverse(std::int64_t row) const { return 1 / sqrtf(squares[row] / width + epsilon); }
};

/// The opening of elements of a gate; of no gate, 1.
template <int n, typename Element>
TANDEM_DEVICE void load_opening(const Element* gate, float (&open)[n]) {
  if (gate != nullptr) load(gate, open);
#pragma unroll
  for (int i = 0; i < n; ++i) open[i] = gate == nullptr ? 1.0F : sigmoid_fast(open[i]);
}

template <typename Shape, typename Element>
__global__ void __launch_bounds__(most_threads_of_team)
    split_norm_squares_kernel(const Element* x, std::int64_t rows, int columns, float* squares) {
  const std::int64_t row = row_of_team();
  float sum = 0;
  if (row < rows) {
    HeldRow<Element, Shape> held;
    held.load(x + row * columns, columns);
    each_vector<Shape>(columns, [&](int column, int chunk) {
      float values[Shape::vector];
      held.get(column, chunk, values);
      for (int i = 0; i < Shape::vector; ++i) sum += values[i] * values[i];
    });
  }
  sum = team_sum(sum);
  if (threadIdx.x == 0 && row < rows) squares[row] = sum;
}

template <typename Element>
struct SplitNormedRow {
  const Element *x, *weight, *gate;
  float inverse;
  Element* y;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[n], weights[n], open[n];
    load(x + i, values);
    load(weight + i, weights);
    load_opening(gate == nullptr ? nullptr : gate + i, open);
    for (int j = 0; j < n; ++j) values[j] = weights[j] * (values[j] * inverse) * open[j];
    store(y + i, values);
  }
};

template <typename Element>
struct SplitNormForward {
  static constexpr int vector = vector_of<Element>;
  SplitNormed<Element> of;
  Element* y;

  TANDEM_DEVICE SplitNormedRow<Element> row(std::int64_t row) const {
    const std::int64_t first = row * of.columns;
    return {of.x + first, of.weight, of.gate == nullptr ? nullptr : of.gate + first, of.inverse(row), y + first};
  }
};

template <typename Shape, typename Element>
__global__ void __launch_bounds__(most_threads_of_team)
    split_norm_products_kernel(SplitNormed<Element> of, const Element* dy, std::int64_t rows, float* products) {
  const std::int64_t row = row_of_team();
  const auto columns = static_cast<int>(of.columns);
  float sum = 0;
  if (row < rows) {
    const float inverse = of.inverse(row);
    const std::int64_t first = row * columns;
    HeldRow<Element, Shape> x, gradient;
    x.load(of.x + first, columns);
    gradient.load(dy + first, columns);
    each_vector<Shape>(columns, [&](int column, int chunk) {
      float values[Shape::vector], gradients[Shape::vector], weights[Shape::vector], open[Shape::vector];
      load(of.weight + column, weights);
      load_opening(of.gate == nullptr ? nullptr : of.gate + first + column, open);
      x.get(column, chunk, values);
      gradient.get(column, chunk, gradients);
      for (int i = 0; i < Shape::vector; ++i) sum += weights[i] * open[i] * gradients[i] * (values[i] * inverse);
    });
  }
  sum = team_sum(sum);
  if (threadIdx.x == 0 && row < rows) products[row] = sum;
}

template <typename Element>
struct SplitNormGradients {
  const Element* dy;
  const float* products;
  Element *dx, *dgate;  ///< no gate: null
};

constexpr int threads_of_columns = 128;

/// partial [slices][columns]: a slice's share of the weight's gradient.
template <int n, typename Element>
__global__ void __launch_bounds__(threads_of_columns)
    split_norm_backward_kernel(SplitNormed<Element> of, SplitNormGradients<Element> gradients, std::int64_t rows,
                               float* partial) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * threads_of_columns + threadIdx.x) * n;
  if (column >= of.columns) return;
  float weights[n], dweight[n] = {};
  load(of.weight + column, weights);
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const std::int64_t at = row * of.columns + column;
    float x[n], dy[n], open[n], dgate[n];
    load(of.x + at, x);
    load(gradients.dy + at, dy);
    load_opening(of.gate == nullptr ? nullptr : of.gate + at, open);
    const float inverse = of.inverse(row), mean = gradients.products[row] / of.width;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float normalised = x[i] * inverse, weighted = weights[i] * dy[i];
      x[i] = inverse * (weighted * open[i] - normalised * mean);
      dgate[i] = weighted * normalised * open[i] * (1 - open[i]);
      dweight[i] += dy[i] * normalised * open[i];
    }
    store(gradients.dx + at, x);
    if (gradients.dgate != nullptr) store(gradients.dgate + at, dgate);
  }
#pragma unroll
  for (int i = 0; i < n; ++i) partial[blockIdx.y * of.columns + column + i] = dweight[i];
}

std::int64_t slices_of_split_norm(std::int64_t rows, std::int64_t columns, std::int64_t vector) {
  constexpr std::int64_t most_blocks_along_y = 65535;
  return std::min(partial_rows(rows, round_up(divide_up(columns, vector), std::int64_t{threads_of_columns})),
                  most_blocks_along_y);
}

/// Operands of an operation: x, squares and weight, the gate where there is one, and so many others.
struct SplitOperands {
  std::span<const DeviceTensor> all;
  bool gated;

  const DeviceTensor& x() const { return all[0]; }
  const DeviceTensor& other(std::size_t i) const { return all[(gated ? 4 : 3) + i]; }

  /// Whether rows are made of whole vectors, all operands beginning so; the last may have any type.
  template <typename Element>
  bool have_vectors(std::int64_t columns) const {
    constexpr int vector = vector_of<Element>;
    return columns % vector == 0 &&
           std::all_of(all.begin(), all.end(), [&](const DeviceTensor& tensor) { return is_aligned(tensor, vector); });
  }

  template <typename Element>
  SplitNormed<Element> normed(const OpAttributes& any) const {
    const auto& attributes = std::get<SplitNormAttributes>(any);
    return {x().as<const Element>(),    all[1].as<const float>(),
            all[2].as<const Element>(), gated ? all[3].as<const Element>() : nullptr,
            columns_of(x().shape),      static_cast<float>(attributes.width),
            attributes.epsilon};
  }
};

constexpr auto rule_of_split_types = "split_norm's operands are of one type, but for sums and the weight's gradient";

/// With `others` operands beside; those in `sums` of them are in fp32, and the last may have any type where `last_is_free`.
template <std::size_t others>
SplitOperands split_operands(OpKind kind, std::span<const DeviceTensor> operands, const OpAttributes& any,
                             std::initializer_list<std::size_t> sums, bool last_is_free = false) {
  const bool gated = std::get<SplitNormAttributes>(any).gated;
  if (gated)
    static_cast<void>(checked<others + 4>(kind, operands, any));
  else
    static_cast<void>(checked<others + 3>(kind, operands, any));
  const SplitOperands of{operands, gated};
  const auto is_of_type = [&](const DeviceTensor& tensor) { return tensor.dtype == of.x().dtype; };
  bool fits = operands[1].dtype == DType::f32 && is_of_type(operands[2]) && (!gated || is_of_type(operands[3]));
  for (std::size_t i = 0; i + (last_is_free ? 1 : 0) < others; ++i) {
    const bool is_sum = std::find(sums.begin(), sums.end(), i) != sums.end();
    fits = fits && (is_sum ? of.other(i).dtype == DType::f32 : is_of_type(of.other(i)));
  }
  expect_types(fits, rule_of_split_types);
  return of;
}

}  // namespace

void split_norm_squares_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, squares] = checked<2>(OpKind::split_norm_squares, operands, any);
  expect_types(squares.dtype == DType::f32, rule_of_split_types);
  const std::int64_t rows = rows_of(x.shape), columns = columns_of(x.shape);
  with_type(x.dtype, [&, x = x, squares = squares]<typename Element>(Type<Element>) {
    with_row_teams<Element>(columns, is_aligned(x, vector_of<Element>), [&]<typename Shape>(Shape, const RowTeams& teams) {
      launch("split_norm_squares", queue, {dim3(teams.blocks(rows)), teams.block()}, split_norm_squares_kernel<Shape, Element>,
             x.template as<const Element>(), rows, static_cast<int>(columns), squares.template as<float>());
    });
  });
}

void split_norm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const SplitOperands of = split_operands<1>(OpKind::split_norm, operands, any, {});
  const std::int64_t rows = rows_of(of.x().shape), columns = columns_of(of.x().shape);
  with_type(of.x().dtype, [&]<typename Element>(Type<Element>) {
    const SplitNormForward<Element> body{of.normed<Element>(any), of.other(0).template as<Element>()};
    launch_row_walk("split_norm", queue, rows, columns, of.have_vectors<Element>(columns), body);
  });
}

void split_norm_products_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const SplitOperands of = split_operands<2>(OpKind::split_norm_products, operands, any, {1});
  const std::int64_t rows = rows_of(of.x().shape), columns = columns_of(of.x().shape);
  with_type(of.x().dtype, [&]<typename Element>(Type<Element>) {
    with_row_teams<Element>(columns, of.have_vectors<Element>(columns), [&]<typename Shape>(Shape, const RowTeams& teams) {
      launch("split_norm_products", queue, {dim3(teams.blocks(rows)), teams.block()}, split_norm_products_kernel<Shape, Element>,
             of.normed<Element>(any), of.other(0).template as<const Element>(), rows, of.other(1).template as<float>());
    });
  });
}

void split_norm_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr OpKind kind = OpKind::split_norm_backward;
  constexpr auto name = "split_norm_backward";
  const bool gated = std::get<SplitNormAttributes>(any).gated;
  const SplitOperands of =
      gated ? split_operands<5>(kind, operands, any, {1}, true) : split_operands<4>(kind, operands, any, {1}, true);
  const DeviceTensor& dweight = operands.back();
  const std::int64_t rows = rows_of(of.x().shape), columns = columns_of(of.x().shape);
  with_type(of.x().dtype, [&]<typename Element>(Type<Element>) {
    const SplitNormGradients<Element> gradients{of.other(0).template as<const Element>(), of.other(1).template as<const float>(),
                                                of.other(2).template as<Element>(),
                                                gated ? of.other(3).template as<Element>() : nullptr};
    constexpr int vector = vector_of<Element>;
    const bool aligned = of.have_vectors<Element>(columns);
    auto* const kernel = aligned ? split_norm_backward_kernel<vector, Element> : split_norm_backward_kernel<1, Element>;
    const std::int64_t along_row = divide_up(columns, (aligned ? vector : 1) * threads_of_columns);
    const std::int64_t slices =
        slices_at_once(blocks_at_once(queue, kernel, threads_of_columns), along_row, slices_of_split_norm(rows, columns, vector));
    auto* const partial = static_cast<float*>(queue.scratch);
    launch(name, queue, {dim3(blocks_along_x(along_row), static_cast<unsigned>(slices)), dim3(threads_of_columns)}, kernel,
           of.normed<Element>(any), gradients, rows, partial);
    with_type(dweight.dtype, [&]<typename Gradient>(Type<Gradient>) {
      launch_add_rows(name, queue, partial, slices, columns, dweight.template as<Gradient>());
    });
  });
}

std::size_t split_norm_backward_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  const OperandType& x = operands[0];
  const std::int64_t columns = columns_of(x.shape);
  const std::int64_t slices = slices_of_split_norm(rows_of(x.shape), columns, widest_access / size_of(x.dtype));
  return static_cast<std::size_t>(slices * columns) * sizeof(float);
}

}  // namespace tandem
