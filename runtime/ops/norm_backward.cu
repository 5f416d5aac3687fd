#include <algorithm>

#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/occupancy.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/column_sum_device.h"
#include "runtime/ops/norm_row_device.h"

// Rows of x and dy stay in a block's registers, so that they cross the memory once: the bytes of the cost. The weight's gradient
// is summed by each block over its rows, then over the blocks, which moves some MB of partial sums beside, mostly within the L2
// cache. Rows too wide for that, or not aligned to vectors, are read anew for each step: three to four times.
namespace tandem {
namespace {

/// What dx needs of a row beside its elements: dx = inverse_deviation (g - mean_gradient - normalised mean_projection).
struct GradientStatistics {
  RowStatistics row;
  float mean_projection, mean_gradient;
};

/// partial [blocks][weight's shape]: each block's rows' share of dweight.
template <NormKind kind, typename Element, int chunks>
__global__ void __launch_bounds__(most_threads_of_row)
    norm_backward_kernel(const Element* x, const Element* weight, const Element* dy, Element* dx, float* partial,
                         std::int64_t rows, int width, float epsilon) {
  using Row = PartOfRow<Element, chunks>;
  constexpr int vector = Row::vector;
  constexpr bool layer = kind == NormKind::layer;
  float dweight[chunks][vector] = {}, dbias[chunks][vector] = {};
  Row row, gradient, next_row, next_gradient;
  if (blockIdx.x < rows) {
    next_row.load(x + std::int64_t{blockIdx.x} * width, width);
    next_gradient.load(dy + std::int64_t{blockIdx.x} * width, width);
  }
  for (std::int64_t i_row = blockIdx.x; i_row < rows; i_row += gridDim.x) {
    row = next_row;
    gradient = next_gradient;
    if (i_row + gridDim.x < rows) {  // under way while this row's sums are taken
      next_row.load(x + (i_row + gridDim.x) * width, width);
      next_gradient.load(dy + (i_row + gridDim.x) * width, width);
    }
    float mean = 0, mean_gradient = 0;
    if constexpr (layer) {
      float sums[2] = {};
      each_chunk<vector, chunks>(width, [&](int chunk) {
        float w[vector];
        load(weight + Row::column_of(chunk), w);
        for (int i = 0; i < vector; ++i) {
          sums[0] += row.at(chunk, i);
          sums[1] += w[i] * gradient.at(chunk, i);
        }
      });
      block_sums(sums);
      mean = sums[0] / static_cast<float>(width);
      mean_gradient = sums[1] / static_cast<float>(width);
    }
    float sums[2] = {};  // of squares; of g times what is not yet divided by the deviation
    each_chunk<vector, chunks>(width, [&](int chunk) {
      float w[vector];
      load(weight + Row::column_of(chunk), w);
      for (int i = 0; i < vector; ++i) {
        const float centred = row.at(chunk, i) - mean;
        sums[0] += centred * centred;
        sums[1] += w[i] * gradient.at(chunk, i) * centred;
      }
    });
    block_sums(sums);
    const float inverse_deviation = 1 / sqrtf(sums[0] / static_cast<float>(width) + epsilon);
    const float mean_projection = sums[1] * inverse_deviation / static_cast<float>(width);
    each_chunk<vector, chunks>(width, [&](int chunk) {
      float w[vector], out[vector];
      load(weight + Row::column_of(chunk), w);
      for (int i = 0; i < vector; ++i) {
        const float dy_i = gradient.at(chunk, i), normalised = (row.at(chunk, i) - mean) * inverse_deviation;
        out[i] = inverse_deviation * (w[i] * dy_i - mean_gradient - normalised * mean_projection);
        dweight[chunk][i] += dy_i * normalised;
        if constexpr (layer) dbias[chunk][i] += dy_i;
      }
      store(dx + i_row * width + Row::column_of(chunk), out);
    });
  }
  float* const mine = partial + std::int64_t{blockIdx.x} * (layer ? 2 : 1) * width;
  each_chunk<vector, chunks>(width, [&](int chunk) {
    store(mine + Row::column_of(chunk), dweight[chunk]);
    if constexpr (layer) store(mine + width + Row::column_of(chunk), dbias[chunk]);
  });
}

template <NormKind kind, typename Element>
__global__ void gradient_statistics_kernel(const Element* x, const Element* weight, const Element* dy,
                                           GradientStatistics* of_rows, std::int64_t width, float epsilon) {
  const Element *const row = x + blockIdx.x * width, *const gradient = dy + blockIdx.x * width;
  const RowStatistics statistics = statistics_of<kind>(row, width, epsilon);
  float sums[2] = {};
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float g = to_float(weight[i]) * to_float(gradient[i]);
    sums[0] += g * (to_float(row[i]) - statistics.mean) * statistics.inverse_deviation;
    sums[1] += g;
  }
  block_sums(sums);
  if (threadIdx.x != 0) return;
  const auto n = static_cast<float>(width);
  of_rows[blockIdx.x] = {statistics, sums[0] / n, kind == NormKind::layer ? sums[1] / n : 0.0F};
}

template <NormKind kind, typename Element, typename Gradient>
__global__ void norm_backward_of_any_row_kernel(const Element* x, const Element* weight, const Element* dy, Element* dx,
                                                Gradient* dweight, const GradientStatistics* of_rows, std::int64_t rows,
                                                std::int64_t width) {
  const std::int64_t column = std::int64_t{blockIdx.x} * panel + threadIdx.x;
  float sum = 0, bias_sum = 0;
  for (std::int64_t row = threadIdx.y; row < rows && column < width; row += panel) {
    const GradientStatistics of_row = of_rows[row];
    const float gradient = to_float(dy[row * width + column]);
    const float normalised = (to_float(x[row * width + column]) - of_row.row.mean) * of_row.row.inverse_deviation;
    dx[row * width + column] =
        from_float<Element>(of_row.row.inverse_deviation *
                            (to_float(weight[column]) * gradient - of_row.mean_gradient - normalised * of_row.mean_projection));
    sum += gradient * normalised;
    bias_sum += gradient;
  }
  sum = sum_of_column(sum);
  bias_sum = sum_of_column(bias_sum);
  if (threadIdx.y != 0 || column >= width) return;
  dweight[column] = from_float<Gradient>(to_float(dweight[column]) + sum);
  if constexpr (kind == NormKind::layer)
    dweight[width + column] = from_float<Gradient>(to_float(dweight[width + column]) + bias_sum);
}

std::int64_t partial_sums(std::int64_t rows, const RowLayout& layout) {
  constexpr std::int64_t blocks_by_threads = 2;  // a block's registers hold two rows: half as many threads run at once
  return partial_rows(rows, blocks_by_threads * layout.threads);
}

}  // namespace

void norm_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<NormAttributes>(any);
  const auto [x, weight, dy, dx, dweight] = checked<5>(OpKind::norm_backward, operands, any);
  expect_types(of_one_type(x, weight, dy, dx), "norm's operands are of one type, but for the weight's gradient");
  const std::int64_t width = columns_of(x.shape), rows = rows_of(x.shape), weights = weight.shape.elements();
  const dim3 block_of_panel(panel, panel);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const auto *const in = x.template as<const Element>(), *const w = weight.template as<const Element>();
    const auto* const gradient = dy.template as<const Element>();
    auto* const out = dx.template as<Element>();
    with_type(dweight.dtype, [&]<typename Gradient>(Type<Gradient>) {
      auto* const weight_gradient = dweight.template as<Gradient>();
      with_kind(attributes.kind, [&]<NormKind kind>(Kind<kind>) {
        if (!stays_in_registers<Element>(width, {x, weight, dy, dx})) {
          auto* const of_rows = static_cast<GradientStatistics*>(queue.scratch);
          launch("norm_backward", queue, {dim3(blocks_along_x(rows)), dim3(most_threads_of_row)},
                 gradient_statistics_kernel<kind, Element>, in, w, gradient, of_rows, width, attributes.epsilon);
          launch("norm_backward", queue, {dim3(blocks_along_x(divide_up(width, panel))), block_of_panel},
                 norm_backward_of_any_row_kernel<kind, Element, Gradient>, in, w, gradient, out, weight_gradient, of_rows, rows,
                 width);
          return;
        }
        const RowLayout layout(width / vector_of<Element>);
        std::int64_t blocks = partial_sums(rows, layout);
        auto* const partial = static_cast<float*>(queue.scratch);
        with_chunks(layout, [&]<int chunks>(Chunks<chunks>) {
          const auto threads = static_cast<unsigned>(layout.threads);
          blocks = slices_at_once(blocks_at_once(queue, norm_backward_kernel<kind, Element, chunks>, threads), 1, blocks);
          launch("norm_backward", queue, {dim3(blocks_along_x(blocks)), dim3(threads)},
                 norm_backward_kernel<kind, Element, chunks>, in, w, gradient, out, partial, rows, static_cast<int>(width),
                 attributes.epsilon);
        });
        launch_add_rows("norm_backward", queue, partial, blocks, weights, weight_gradient);
      });
    });
  });
}

std::size_t norm_backward_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  const OperandType& x = operands[0];
  const std::int64_t rows = rows_of(x.shape), width = columns_of(x.shape), weights = operands[1].shape.elements();
  const RowLayout layout(divide_up(width, widest_access / size_of(x.dtype)));
  const auto statistics = static_cast<std::size_t>(rows) * sizeof(GradientStatistics);
  return std::max(statistics, static_cast<std::size_t>(partial_sums(rows, layout) * weights) * sizeof(float));
}

}  // namespace tandem
