#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/split_norm.h"

// A block sums a row; what is made of the sums has a thread for each element, and the weight's gradient is summed by columns.
namespace tandem {
namespace {

constexpr int threads_of_split_row = 256;

template <typename Element>
struct SplitNormed {
  const Element* x;
  const float* squares;
  const Element *weight, *gate;
  std::int64_t columns;
  float width, epsilon;

  TANDEM_DEVICE float inverse(std::int64_t row) const { return 1 / sqrtf(squares[row] / width + epsilon); }
  TANDEM_DEVICE float normalised(std::int64_t row, std::int64_t i) const { return to_float(x[row * columns + i]) * inverse(row); }
  TANDEM_DEVICE float open(std::int64_t row, std::int64_t i) const { return 1 / (1 + expf(-to_float(gate[row * columns + i]))); }
};

template <typename Element>
__global__ void split_norm_squares_kernel(const Element* x, std::int64_t columns, float* squares) {
  const std::int64_t row = blockIdx.x;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const float value = to_float(x[row * columns + i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) squares[row] = sum;
}

template <typename Element>
struct SplitNormForward {
  static constexpr int vector = 1;
  SplitNormed<Element> of;
  Element* y;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t i) const {
    y[row * of.columns + i] = from_float<Element>(to_float(of.weight[i]) * of.normalised(row, i) * of.open(row, i));
  }
};

template <typename Element>
__global__ void split_norm_products_kernel(SplitNormed<Element> of, const Element* dy, float* products) {
  const std::int64_t row = blockIdx.x;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < of.columns; i += blockDim.x)
    sum += to_float(of.weight[i]) * of.open(row, i) * to_float(dy[row * of.columns + i]) * of.normalised(row, i);
  sum = block_sum(sum);
  if (threadIdx.x == 0) products[row] = sum;
}

template <typename Element>
struct SplitNormBackward {
  static constexpr int vector = 1;
  SplitNormed<Element> of;
  const Element* dy;
  const float* products;
  Element *dx, *dgate;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t i) const {
    const std::int64_t at = row * of.columns + i;
    const float open = of.open(row, i), normalised = of.normalised(row, i);
    const float weighted = to_float(of.weight[i]) * to_float(dy[at]);
    dx[at] = from_float<Element>(of.inverse(row) * (weighted * open - normalised * (products[row] / of.width)));
    dgate[at] = from_float<Element>(weighted * normalised * open * (1 - open));
  }
};

constexpr int columns_of_split_panel = 32, rows_of_split_panel = 16;

template <typename Element, typename Gradient>
__global__ void split_norm_weight_kernel(SplitNormed<Element> of, const Element* dy, std::int64_t rows, Gradient* dweight) {
  TANDEM_SHARED(float, sums, columns_of_split_panel* rows_of_split_panel);
  const std::int64_t column = std::int64_t{blockIdx.x} * columns_of_split_panel + threadIdx.x;
  float sum = 0;
  if (column < of.columns)
    for (std::int64_t row = threadIdx.y; row < rows; row += rows_of_split_panel)
      sum += to_float(dy[row * of.columns + column]) * of.normalised(row, column) * of.open(row, column);
  sums[threadIdx.y * columns_of_split_panel + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= of.columns) return;
  for (int i = 1; i < rows_of_split_panel; ++i) sum += sums[i * columns_of_split_panel + static_cast<int>(threadIdx.x)];
  dweight[column] = from_float<Gradient>(to_float(dweight[column]) + sum);
}

template <typename Element>
SplitNormed<Element> split_normed(const DeviceTensor& x, const DeviceTensor& squares, const DeviceTensor& weight,
                                  const DeviceTensor& gate, const OpAttributes& any) {
  const auto& attributes = std::get<SplitNormAttributes>(any);
  return {x.as<const Element>(),    squares.as<const float>(), weight.as<const Element>(),
          gate.as<const Element>(), columns_of(x.shape),       static_cast<float>(attributes.width),
          attributes.epsilon};
}

constexpr auto rule_of_split_types = "split_norm's operands are of one type, but for sums and the weight's gradient";

}  // namespace

void split_norm_squares_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, squares] = checked<2>(OpKind::split_norm_squares, operands, any);
  expect_types(squares.dtype == DType::f32, rule_of_split_types);
  with_type(x.dtype, [&, x = x, squares = squares]<typename Element>(Type<Element>) {
    launch("split_norm_squares", queue, {dim3(blocks_along_x(rows_of(x.shape))), dim3(threads_of_split_row)},
           split_norm_squares_kernel<Element>, x.template as<const Element>(), columns_of(x.shape), squares.template as<float>());
  });
}

void split_norm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, squares, weight, gate, y] = checked<5>(OpKind::split_norm, operands, any);
  expect_types(of_one_type(x, weight, gate, y) && squares.dtype == DType::f32, rule_of_split_types);
  with_type(x.dtype, [&, x = x, squares = squares, weight = weight, gate = gate, y = y]<typename Element>(Type<Element>) {
    const SplitNormForward<Element> body{split_normed<Element>(x, squares, weight, gate, any), y.template as<Element>()};
    launch_by_rows("split_norm", queue, rows_of(x.shape), columns_of(x.shape), false, body);
  });
}

void split_norm_products_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, squares, weight, gate, dy, products] = checked<6>(OpKind::split_norm_products, operands, any);
  expect_types(of_one_type(x, weight, gate, dy) && squares.dtype == DType::f32 && products.dtype == DType::f32,
               rule_of_split_types);
  with_type(x.dtype, [&, x = x, squares = squares, weight = weight, gate = gate, dy = dy,
                      products = products]<typename Element>(Type<Element>) {
    launch("split_norm_products", queue, {dim3(blocks_along_x(rows_of(x.shape))), dim3(threads_of_split_row)},
           split_norm_products_kernel<Element>, split_normed<Element>(x, squares, weight, gate, any),
           dy.template as<const Element>(), products.template as<float>());
  });
}

void split_norm_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr auto name = "split_norm_backward";
  const auto [x, squares, weight, gate, dy, products, dx, dgate, dweight] =
      checked<9>(OpKind::split_norm_backward, operands, any);
  expect_types(of_one_type(x, weight, gate, dy, dx, dgate) && squares.dtype == DType::f32 && products.dtype == DType::f32,
               rule_of_split_types);
  with_type(x.dtype, [&, x = x, squares = squares, weight = weight, gate = gate, dy = dy, products = products, dx = dx,
                      dgate = dgate, dweight = dweight]<typename Element>(Type<Element>) {
    const auto of = split_normed<Element>(x, squares, weight, gate, any);
    const auto* const gradient = dy.template as<const Element>();
    const SplitNormBackward<Element> body{of, gradient, products.template as<const float>(), dx.template as<Element>(),
                                          dgate.template as<Element>()};
    const std::int64_t rows = rows_of(x.shape), columns = columns_of(x.shape);
    launch_by_rows(name, queue, rows, columns, false, body);
    with_type(dweight.dtype, [&]<typename Gradient>(Type<Gradient>) {
      launch(
          name, queue,
          {dim3(blocks_along_x(divide_up(columns, columns_of_split_panel))), dim3(columns_of_split_panel, rows_of_split_panel)},
          split_norm_weight_kernel<Element, Gradient>, of, gradient, rows, dweight.template as<Gradient>());
    });
  });
}

}  // namespace tandem
