#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/pool_rows.h"

// A thread for each element that is written; neighbours read neighbours.
namespace tandem {
namespace {

constexpr int threads_of_pool = 256;

template <typename Element>
__global__ void pool_rows_kernel(const Element* x, Element* y, std::int64_t means, std::int64_t rows, std::int64_t row) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads_of_pool + threadIdx.x;
  if (i >= means) return;
  const Element* const window = x + i / row * rows * row + i % row;
  float sum = 0;
  for (std::int64_t j = 0; j < rows; ++j) sum += to_float(window[j * row]);
  y[i] = from_float<Element>(sum / static_cast<float>(rows));
}

template <typename Element>
__global__ void pool_rows_backward_kernel(const Element* dy, Element* dx, std::int64_t elements, std::int64_t rows,
                                          std::int64_t row) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads_of_pool + threadIdx.x;
  if (i < elements) dx[i] = from_float<Element>(to_float(dy[i / row / rows * row + i % row]) / static_cast<float>(rows));
}

Grid grid_of_pool(std::int64_t elements) {
  return {dim3(blocks_along_x(divide_up(elements, threads_of_pool))), dim3(threads_of_pool)};
}

}  // namespace

void pool_rows_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, y] = checked<2>(OpKind::pool_rows, operands, any);
  expect_types(of_one_type(x, y), "pool_rows' operands are of one type");
  with_type(x.dtype, [&, x = x, y = y]<typename Element>(Type<Element>) {
    launch("pool_rows", queue, grid_of_pool(y.shape.elements()), pool_rows_kernel<Element>, x.template as<const Element>(),
           y.template as<Element>(), y.shape.elements(), rows_of_mean(x.shape, y.shape), y.shape[1] * y.shape[2]);
  });
}

void pool_rows_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [dy, dx] = checked<2>(OpKind::pool_rows_backward, operands, any);
  expect_types(of_one_type(dy, dx), "pool_rows' operands are of one type");
  with_type(dy.dtype, [&, dy = dy, dx = dx]<typename Element>(Type<Element>) {
    launch("pool_rows_backward", queue, grid_of_pool(dx.shape.elements()), pool_rows_backward_kernel<Element>,
           dy.template as<const Element>(), dx.template as<Element>(), dx.shape.elements(), rows_of_mean(dx.shape, dy.shape),
           dy.shape[1] * dy.shape[2]);
  });
}

}  // namespace tandem
