#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"

// A warp for each row, of which x is read twice; the caches hold it.
namespace tandem {
namespace {

constexpr int warps_of_unit_norm = 8;

template <typename Element>
TANDEM_DEVICE float inverse_length(const Element* row, std::int64_t width, float epsilon) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < width; i += lanes_of_warp) sum += to_float(row[i]) * to_float(row[i]);
  return 1 / sqrtf(warp_sum(sum) / static_cast<float>(width) + epsilon);
}

template <typename Element>
__global__ void unit_norm_kernel(const Element* x, Element* y, std::int64_t rows, std::int64_t width, float epsilon) {
  const std::int64_t row = std::int64_t{blockIdx.x} * warps_of_unit_norm + threadIdx.x / lanes_of_warp;
  if (row >= rows) return;
  const Element* const in = x + row * width;
  const float inverse = inverse_length(in, width, epsilon);
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < width; i += lanes_of_warp)
    y[row * width + i] = from_float<Element>(to_float(in[i]) * inverse);
}

template <typename Element>
__global__ void unit_norm_backward_kernel(const Element* x, const Element* dy, Element* dx, std::int64_t rows, std::int64_t width,
                                          float epsilon) {
  const std::int64_t row = std::int64_t{blockIdx.x} * warps_of_unit_norm + threadIdx.x / lanes_of_warp;
  if (row >= rows) return;
  const Element *const in = x + row * width, *const gradient = dy + row * width;
  const float inverse = inverse_length(in, width, epsilon);
  float sum = 0;
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < width; i += lanes_of_warp)
    sum += to_float(gradient[i]) * to_float(in[i]);
  const float mean = warp_sum(sum) * inverse / static_cast<float>(width);
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < width; i += lanes_of_warp)
    dx[row * width + i] = from_float<Element>(inverse * (to_float(gradient[i]) - to_float(in[i]) * inverse * mean));
}

Grid grid_of_unit_rows(std::int64_t rows) {
  return {dim3(blocks_along_x(divide_up(rows, warps_of_unit_norm))), dim3(warps_of_unit_norm * lanes_of_warp)};
}

}  // namespace

void unit_norm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, y] = checked<2>(OpKind::unit_norm, operands, any);
  expect_types(of_one_type(x, y), "unit_norm's operands are of one type");
  const float epsilon = std::get<NormAttributes>(any).epsilon;
  with_type(x.dtype, [&, x = x, y = y]<typename Element>(Type<Element>) {
    launch("unit_norm", queue, grid_of_unit_rows(rows_of(x.shape)), unit_norm_kernel<Element>, x.template as<const Element>(),
           y.template as<Element>(), rows_of(x.shape), columns_of(x.shape), epsilon);
  });
}

void unit_norm_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, dy, dx] = checked<3>(OpKind::unit_norm_backward, operands, any);
  expect_types(of_one_type(x, dy, dx), "unit_norm's operands are of one type");
  const float epsilon = std::get<NormAttributes>(any).epsilon;
  with_type(x.dtype, [&, x = x, dy = dy, dx = dx]<typename Element>(Type<Element>) {
    launch("unit_norm_backward", queue, grid_of_unit_rows(rows_of(x.shape)), unit_norm_backward_kernel<Element>,
           x.template as<const Element>(), dy.template as<const Element>(), dx.template as<Element>(), rows_of(x.shape),
           columns_of(x.shape), epsilon);
  });
}

}  // namespace tandem
