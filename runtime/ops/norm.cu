#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/norm_row_device.h"

// A row stays in a block's registers, so that x crosses the memory once: the bytes of the cost. Rows too wide for that, or not
// aligned to vectors, are read anew for each step: two to three times.
namespace tandem {
namespace {

template <NormKind kind, typename Element, int chunks>
__global__ void __launch_bounds__(most_threads_of_row)
    norm_kernel(const Element* x, const Element* weight, Element* y, int width, float epsilon) {
  using Row = PartOfRow<Element, chunks>;
  constexpr int vector = Row::vector;
  const std::int64_t first = std::int64_t{blockIdx.x} * width;
  Row row;
  row.load(x + first, width);
  float mean = 0, squares = 0;
  if constexpr (kind == NormKind::layer) {
    float sum = 0;
    each_chunk<vector, chunks>(width, [&](int chunk) {
      for (int i = 0; i < vector; ++i) sum += row.at(chunk, i);
    });
    mean = block_sum(sum) / static_cast<float>(width);
  }
  each_chunk<vector, chunks>(width, [&](int chunk) {
    for (int i = 0; i < vector; ++i) squares += (row.at(chunk, i) - mean) * (row.at(chunk, i) - mean);
  });
  const float inverse_deviation = 1 / sqrtf(block_sum(squares) / static_cast<float>(width) + epsilon);
  each_chunk<vector, chunks>(width, [&](int chunk) {
    const int column = Row::column_of(chunk);
    float w[vector], bias[vector] = {}, out[vector];
    load(weight + column, w);
    if constexpr (kind == NormKind::layer) load(weight + width + column, bias);
    for (int i = 0; i < vector; ++i) out[i] = w[i] * ((row.at(chunk, i) - mean) * inverse_deviation) + bias[i];
    store(y + first + column, out);
  });
}

template <NormKind kind, typename Element>
__global__ void norm_of_any_row_kernel(const Element* x, const Element* weight, Element* y, std::int64_t width, float epsilon) {
  const Element* const row = x + blockIdx.x * width;
  const RowStatistics statistics = statistics_of<kind>(row, width, epsilon);
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float normalised = (to_float(row[i]) - statistics.mean) * statistics.inverse_deviation;
    const float bias = kind == NormKind::layer ? to_float(weight[width + i]) : 0.0F;
    y[blockIdx.x * width + i] = from_float<Element>(to_float(weight[i]) * normalised + bias);
  }
}

}  // namespace

void norm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<NormAttributes>(any);
  const auto [x, weight, y] = checked<3>(OpKind::norm, operands, any);
  expect_types(of_one_type(x, weight, y), "norm's operands are of one type");
  const std::int64_t width = columns_of(x.shape);
  const dim3 rows(blocks_along_x(rows_of(x.shape)));
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const auto *const in = x.template as<const Element>(), *const w = weight.template as<const Element>();
    auto* const out = y.template as<Element>();
    with_kind(attributes.kind, [&]<NormKind kind>(Kind<kind>) {
      if (!stays_in_registers<Element>(width, {x, weight, y})) {
        launch("norm", queue, {rows, dim3(most_threads_of_row)}, norm_of_any_row_kernel<kind, Element>, in, w, out, width,
               attributes.epsilon);
        return;
      }
      const RowLayout layout(width / vector_of<Element>);
      with_chunks(layout, [&]<int chunks>(Chunks<chunks>) {
        launch("norm", queue, {rows, dim3(static_cast<unsigned>(layout.threads))}, norm_kernel<kind, Element, chunks>, in, w, out,
               static_cast<int>(width), attributes.epsilon);
      });
    });
  });
}

}  // namespace tandem
