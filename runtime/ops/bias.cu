#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/bias.h"

// Each moves the bytes of its cost, in a launch for each expert where these have biases of their own. A block sums 32 columns:
// neighbouring threads take neighbouring columns, so that what a row of threads reads lies together, and the rows of threads are
// added up in one order.
namespace tandem {
namespace {

template <typename Element, typename Bias>
struct AddBias {
  static constexpr int vector = vector_of<Element, Bias>;
  const Bias* bias;
  Element* x;
  std::int64_t columns;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    float values[n], added[n];
    load(x + row * columns + column, values);
    load(bias + column, added);
    for (int j = 0; j < n; ++j) values[j] += added[j];
    store(x + row * columns + column, values);
  }
};

constexpr int columns_of_block = 32, rows_of_block = 16;

template <typename Element, typename Gradient>
__global__ void bias_gradient_kernel(const Element* dy, Gradient* dbias, std::int64_t rows, std::int64_t columns) {
  TANDEM_SHARED(float, sums, columns_of_block* rows_of_block);
  const std::int64_t column = std::int64_t{blockIdx.x} * columns_of_block + threadIdx.x;
  float sum = 0;
  if (column < columns)
    for (std::int64_t row = threadIdx.y; row < rows; row += rows_of_block) sum += to_float(dy[row * columns + column]);
  sums[threadIdx.y * columns_of_block + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 1; i < rows_of_block; ++i) sum += sums[i * columns_of_block + static_cast<int>(threadIdx.x)];
  dbias[column] = from_float<Gradient>(to_float(dbias[column]) + sum);
}

}  // namespace

void add_bias_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [bias, x] = checked<2>(OpKind::add_bias, operands, attributes);
  expect_types(of_one_type(bias, x) || x.dtype == DType::f32, "a bias has the type of what it is added to, or that is fp32");
  const std::int64_t columns = columns_of(x.shape);
  const std::vector<BiasedRows> parts = biased_rows(bias.shape, x.shape, attributes);
  with_type(x.dtype, [&, bias = bias, x = x]<typename Element>(Type<Element>) {
    with_type(bias.dtype, [&]<typename Bias>(Type<Bias>) {
      for (const BiasedRows& part : parts) {
        const AddBias<Element, Bias> body{bias.template as<const Bias>() + part.bias,
                                          x.template as<Element>() + part.first * columns, columns};
        const bool aligned = columns % body.vector == 0 && are_aligned({bias, x}, body.vector);
        if (part.rows > 0) launch_by_rows("add_bias", queue, part.rows, columns, aligned, body);
      }
    });
  });
}

void bias_gradient_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [dy, dbias] = checked<2>(OpKind::bias_gradient, operands, attributes);
  const std::int64_t columns = columns_of(dy.shape);
  const std::vector<BiasedRows> parts = biased_rows(dbias.shape, dy.shape, attributes);
  with_type(dy.dtype, [&, dy = dy, dbias = dbias]<typename Element>(Type<Element>) {
    with_type(dbias.dtype, [&]<typename Gradient>(Type<Gradient>) {
      for (const BiasedRows& part : parts)
        launch("bias_gradient", queue,
               {dim3(blocks_along_x(divide_up(columns, columns_of_block))), dim3(columns_of_block, rows_of_block)},
               bias_gradient_kernel<Element, Gradient>, dy.template as<const Element>() + part.first * columns,
               dbias.template as<Gradient>() + part.bias, part.rows, columns);
    });
  });
}

}  // namespace tandem
