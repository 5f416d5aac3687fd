#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/orthogonalize.h"

// One block does it all, on a copy in fp32 that has the columns one after the other.
namespace tandem {
namespace {

constexpr int threads_of_columns = 512;

struct Columns {
  float* data;
  std::int64_t rows;

  TANDEM_DEVICE float* column(std::int64_t i) const { return data + i * rows; }

  TANDEM_DEVICE float product(const float* a, const float* b) const {
    float sum = 0;
    for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) sum += a[row] * b[row];
    return block_sum(sum);
  }

  /// Takes out of column i what lies in the direction of those before it; returns its length then. Every thread reads and writes
  /// its own rows alone.
  TANDEM_DEVICE float take_out(std::int64_t i) const {
    float* const mine = column(i);
    for (int time = 0; time < 2; ++time) {
      for (std::int64_t before = 0; before < i; ++before) {
        const float* const other = column(before);
        const float along = product(other, mine);
        for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) mine[row] -= along * other[row];
      }
    }
    return sqrtf(product(mine, mine));
  }
};

template <typename Element>
__global__ void orthogonalize_kernel(Element* p, std::int64_t rank, Columns columns) {
  for (std::int64_t i = 0; i < rank; ++i) {
    float* const column = columns.column(i);
    for (std::int64_t row = threadIdx.x; row < columns.rows; row += blockDim.x) column[row] = to_float(p[row * rank + i]);
    const float before = sqrtf(columns.product(column, column));
    float length = columns.take_out(i);
    if (!(length > dependent_share * before)) {
      for (std::int64_t row = threadIdx.x; row < columns.rows; row += blockDim.x) column[row] = orthogonal_filler(row, i);
      length = columns.take_out(i);
    }
    for (std::int64_t row = threadIdx.x; row < columns.rows; row += blockDim.x) {
      column[row] /= length;
      p[row * rank + i] = from_float<Element>(column[row]);
    }
  }
}

}  // namespace

void orthogonalize_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [p] = checked<1>(OpKind::orthogonalize, operands, attributes);
  with_type(p.dtype, [&, p = p]<typename Element>(Type<Element>) {
    launch("orthogonalize", queue, {dim3(1), dim3(threads_of_columns)}, orthogonalize_kernel<Element>, p.as<Element>(),
           p.shape[1], Columns{static_cast<float*>(queue.scratch), p.shape[0]});
  });
}

std::size_t orthogonalize_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  return static_cast<std::size_t>(operands[0].shape.elements()) * sizeof(float);
}

}  // namespace tandem
