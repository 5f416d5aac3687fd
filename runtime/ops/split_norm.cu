#include <algorithm>

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
  TANDEM_DEVICE float open(std::int64_t row, std::int64_t i) const {
    return gate == nullptr ? 1.0F : 1 / (1 + expf(-to_float(gate[row * columns + i])));
  }
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
    if (dgate != nullptr) dgate[at] = from_float<Element>(weighted * normalised * open * (1 - open));
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

/// Operands of an operation: x, squares and weight, the gate where there is one, and so many others.
struct SplitOperands {
  std::span<const DeviceTensor> all;
  bool gated;

  const DeviceTensor& x() const { return all[0]; }
  const DeviceTensor& other(std::size_t i) const { return all[(gated ? 4 : 3) + i]; }

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
  with_type(x.dtype, [&, x = x, squares = squares]<typename Element>(Type<Element>) {
    launch("split_norm_squares", queue, {dim3(blocks_along_x(rows_of(x.shape))), dim3(threads_of_split_row)},
           split_norm_squares_kernel<Element>, x.template as<const Element>(), columns_of(x.shape), squares.template as<float>());
  });
}

void split_norm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const SplitOperands of = split_operands<1>(OpKind::split_norm, operands, any, {});
  with_type(of.x().dtype, [&]<typename Element>(Type<Element>) {
    const SplitNormForward<Element> body{of.normed<Element>(any), of.other(0).template as<Element>()};
    launch_by_rows("split_norm", queue, rows_of(of.x().shape), columns_of(of.x().shape), false, body);
  });
}

void split_norm_products_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const SplitOperands of = split_operands<2>(OpKind::split_norm_products, operands, any, {1});
  with_type(of.x().dtype, [&]<typename Element>(Type<Element>) {
    launch("split_norm_products", queue, {dim3(blocks_along_x(rows_of(of.x().shape))), dim3(threads_of_split_row)},
           split_norm_products_kernel<Element>, of.normed<Element>(any), of.other(0).template as<const Element>(),
           of.other(1).template as<float>());
  });
}

void split_norm_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr OpKind kind = OpKind::split_norm_backward;
  constexpr auto name = "split_norm_backward";
  const bool gated = std::get<SplitNormAttributes>(any).gated;
  const SplitOperands operands_of =
      gated ? split_operands<5>(kind, operands, any, {1}, true) : split_operands<4>(kind, operands, any, {1}, true);
  const DeviceTensor& dweight = operands.back();
  with_type(operands_of.x().dtype, [&]<typename Element>(Type<Element>) {
    const auto of = operands_of.normed<Element>(any);
    const auto* const gradient = operands_of.other(0).template as<const Element>();
    const SplitNormBackward<Element> body{of, gradient, operands_of.other(1).template as<const float>(),
                                          operands_of.other(2).template as<Element>(),
                                          gated ? operands_of.other(3).template as<Element>() : nullptr};
    const std::int64_t rows = rows_of(operands_of.x().shape), columns = columns_of(operands_of.x().shape);
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
