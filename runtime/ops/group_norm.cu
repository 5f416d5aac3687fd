#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/group_norm.h"

// A block takes a part of a row at a time, which it reads twice, the second time from a cache. The gradient of the weight is
// summed by columns, with what the first kernel left of each part.
namespace tandem {
namespace {

constexpr int threads_of_part = 128;

template <typename Element>
struct Parts {
  const Element *x, *weight, *gate;  ///< no gate: null
  std::int64_t width, groups, weight_groups, gate_columns, gate_column;
  float epsilon;

  TANDEM_DEVICE float weight_of(std::int64_t part, std::int64_t i) const {
    return to_float(weight[part % weight_groups * width + i]);
  }
  TANDEM_DEVICE std::int64_t gate_at(std::int64_t part, std::int64_t i) const {
    return part / groups * gate_columns + gate_column + part % groups * width + i;
  }
  TANDEM_DEVICE float opened(std::int64_t part, std::int64_t i) const {
    if (gate == nullptr) return 1;
    const float z = to_float(gate[gate_at(part, i)]);
    return z / (1 + expf(-z));
  }
};

template <typename Element>
TANDEM_DEVICE float inverse_deviation_of_part(const Parts<Element>& parts, std::int64_t part) {
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < parts.width; i += blockDim.x) {
    const float x = to_float(parts.x[part * parts.width + i]);
    squares += x * x;
  }
  return 1 / sqrtf(block_sum(squares) / static_cast<float>(parts.width) + parts.epsilon);
}

template <typename Element>
__global__ void group_norm_kernel(Parts<Element> parts, Element* y) {
  const std::int64_t part = blockIdx.x, first = part * parts.width;
  const float inverse = inverse_deviation_of_part(parts, part);
  for (std::int64_t i = threadIdx.x; i < parts.width; i += blockDim.x)
    y[first + i] =
        from_float<Element>(parts.weight_of(part, i) * (to_float(parts.x[first + i]) * inverse) * parts.opened(part, i));
}

template <typename Element>
__global__ void group_norm_backward_kernel(Parts<Element> parts, const Element* dy, Element* dx, Element* dz, float* inverses) {
  const std::int64_t part = blockIdx.x, first = part * parts.width;
  const float inverse = inverse_deviation_of_part(parts, part);
  float projection = 0;
  for (std::int64_t i = threadIdx.x; i < parts.width; i += blockDim.x) {
    const std::int64_t at = first + i;
    const float gradient = to_float(dy[at]), normalised = to_float(parts.x[at]) * inverse, w = parts.weight_of(part, i);
    projection += w * parts.opened(part, i) * gradient * normalised;
    if (parts.gate == nullptr) continue;
    const float z = to_float(parts.gate[parts.gate_at(part, i)]), sigmoid = 1 / (1 + expf(-z));
    dz[parts.gate_at(part, i)] = from_float<Element>(gradient * w * normalised * sigmoid * (1 + z * (1 - sigmoid)));
  }
  const float mean = block_sum(projection) / static_cast<float>(parts.width);
  for (std::int64_t i = threadIdx.x; i < parts.width; i += blockDim.x) {
    const std::int64_t at = first + i;
    const float g = parts.weight_of(part, i) * parts.opened(part, i) * to_float(dy[at]);
    dx[at] = from_float<Element>(inverse * (g - to_float(parts.x[at]) * inverse * mean));
  }
  if (threadIdx.x == 0) inverses[part] = inverse;
}

constexpr int columns_of_panel = 32, rows_of_panel = 16;

template <typename Element, typename Gradient>
__global__ void group_weight_gradient_kernel(Parts<Element> parts, const Element* dy, const float* inverses, std::int64_t count,
                                             Gradient* dweight) {
  TANDEM_SHARED(float, sums, columns_of_panel* rows_of_panel);
  const std::int64_t column = std::int64_t{blockIdx.x} * columns_of_panel + threadIdx.x;
  const std::int64_t columns = parts.weight_groups * parts.width;
  float sum = 0;
  if (column < columns) {
    for (std::int64_t part = column / parts.width + threadIdx.y * parts.weight_groups; part < count;
         part += rows_of_panel * parts.weight_groups) {
      const std::int64_t at = part * parts.width + column % parts.width;
      sum += to_float(dy[at]) * parts.opened(part, column % parts.width) * (to_float(parts.x[at]) * inverses[part]);
    }
  }
  sums[threadIdx.y * columns_of_panel + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 1; i < rows_of_panel; ++i) sum += sums[i * columns_of_panel + static_cast<int>(threadIdx.x)];
  dweight[column] = from_float<Gradient>(to_float(dweight[column]) + sum);
}

template <typename Element>
Parts<Element> parts_of(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor* gate,
                        const GroupNormAttributes& attributes) {
  const std::int64_t width = columns_of(x.shape) / attributes.groups;
  return {x.as<const Element>(),
          weight.as<const Element>(),
          gate == nullptr ? nullptr : gate->as<const Element>(),
          width,
          attributes.groups,
          weight.shape.elements() / width,
          gate == nullptr ? 0 : columns_of(gate->shape),
          attributes.gate_column,
          attributes.epsilon};
}

}  // namespace

void group_norm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  check_shapes(OpKind::group_norm, operands, any);
  const auto& attributes = std::get<GroupNormAttributes>(any);
  const DeviceTensor &x = operands[0], &weight = operands[1], &y = operands.back();
  const DeviceTensor* const gate = operands.size() > 3 ? &operands[2] : nullptr;
  expect_types(of_one_type(x, weight, y) && (gate == nullptr || of_one_type(x, *gate)), "group_norm's operands are of one type");
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    launch("group_norm", queue, {dim3(blocks_along_x(rows_of(x.shape) * attributes.groups)), dim3(threads_of_part)},
           group_norm_kernel<Element>, parts_of<Element>(x, weight, gate, attributes), y.template as<Element>());
  });
}

void group_norm_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  check_shapes(OpKind::group_norm_backward, operands, any);
  const auto& attributes = std::get<GroupNormAttributes>(any);
  const bool gated = operands.size() > 5;
  const DeviceTensor &x = operands[0], &weight = operands[1], &dy = operands[gated ? 3 : 2], &dx = operands[gated ? 4 : 3];
  const DeviceTensor *const gate = gated ? &operands[2] : nullptr, &dweight = operands.back();
  expect_types(of_one_type(x, weight, dy, dx) && (!gated || of_one_type(x, operands[2], operands[5])),
               "group_norm's operands are of one type, but for the weight's gradient");
  const std::int64_t parts = rows_of(x.shape) * attributes.groups;
  auto* const inverses = static_cast<float*>(queue.scratch);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const auto of = parts_of<Element>(x, weight, gate, attributes);
    const auto* const gradient = dy.template as<const Element>();
    launch("group_norm_backward", queue, {dim3(blocks_along_x(parts)), dim3(threads_of_part)},
           group_norm_backward_kernel<Element>, of, gradient, dx.template as<Element>(),
           gated ? operands[5].template as<Element>() : nullptr, inverses);
    with_type(dweight.dtype, [&]<typename Gradient>(Type<Gradient>) {
      launch("group_norm_backward", queue,
             {dim3(blocks_along_x(divide_up(weight.shape.elements(), columns_of_panel))), dim3(columns_of_panel, rows_of_panel)},
             group_weight_gradient_kernel<Element, Gradient>, of, gradient, inverses, parts, dweight.template as<Gradient>());
    });
  });
}

std::size_t group_norm_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  return static_cast<std::size_t>(rows_of(operands[0].shape) * std::get<GroupNormAttributes>(any).groups) * sizeof(float);
}

}  // namespace tandem
