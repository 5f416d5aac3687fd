#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/column_sum_device.h"
#include "runtime/ops/group_norm.h"
#include "runtime/ops/row_team_device.h"
#include "runtime/ops/sigmoid_device.h"

// A team of threads takes a part of a row at a time, which stays in its registers, and in the backward many parts one after the
// other, all of one part of the weight, whose gradient it sums: everything crosses the memory once, as the cost says, and some MB
// of partial sums beside.
namespace tandem {
namespace {

template <typename Element>
struct Parts {
  const Element *x, *weight, *gate;  ///< no gate: null
  std::int64_t width, groups, weight_groups, gate_columns, gate_column, count;
  float epsilon;

  TANDEM_DEVICE const Element* weight_of(std::int64_t part) const { return weight + part % weight_groups * width; }
  /// Where its elements begin in `gate`.
  TANDEM_DEVICE std::int64_t gate_at(std::int64_t part) const {
    const std::int64_t row = part / groups;
    return row * gate_columns + gate_column + (part - row * groups) * width;
  }
};

template <typename Shape, typename Element>
TANDEM_DEVICE float inverse_deviation(const HeldRow<Element, Shape>& x, int width, float epsilon) {
  float squares = 0;
  if (x.row != nullptr)
    each_vector<Shape>(width, [&](int column, int chunk) {
      float values[Shape::vector];
      x.get(column, chunk, values);
      for (int i = 0; i < Shape::vector; ++i) squares += values[i] * values[i];
    });
  return 1 / sqrtf(team_sum(squares) / static_cast<float>(width) + epsilon);
}

template <typename Shape, typename Element>
__global__ void __launch_bounds__(most_threads_of_team) group_norm_kernel(Parts<Element> parts, Element* y) {
  constexpr int vector = Shape::vector;
  const std::int64_t part = row_of_team();
  const auto width = static_cast<int>(parts.width);
  HeldRow<Element, Shape> x, gate;
  if (part < parts.count) {
    x.load(parts.x + part * width, width);
    if (parts.gate != nullptr) gate.load(parts.gate + parts.gate_at(part), width);
  }
  const float inverse = inverse_deviation(x, width, parts.epsilon);
  if (part >= parts.count) return;
  const Element* const weight = parts.weight_of(part);
  each_vector<Shape>(width, [&](int column, int chunk) {
    float values[vector], weights[vector], z[vector] = {};
    x.get(column, chunk, values);
    load(weight + column, weights);
    if (parts.gate != nullptr) gate.get(column, chunk, z);
    for (int i = 0; i < vector; ++i) {
      const float open = parts.gate != nullptr ? z[i] * sigmoid_fast(z[i]) : 1.0F;
      values[i] = weights[i] * (values[i] * inverse) * open;
    }
    store(y + part * width + column, values);
  });
}

template <typename Element>
struct PartGradients {
  const Element* dy;
  Element *dx, *dz;
};

/// Block (x, y) takes parts of the weight's part y, and leaves its share of the gradient of the weight in partial
/// [x][y][width]: each team sums in shared memory of its own, [teams][width], where rows are held, and else in a row of
/// `partial` [x][teams][y][width].
template <typename Shape, bool gated, typename Element>
__global__ void __launch_bounds__(most_threads_of_team, gated ? 1 : 2)
    group_norm_backward_kernel(Parts<Element> parts, PartGradients<Element> gradients, float* partial) {
  constexpr int vector = Shape::vector;
  constexpr bool held = Shape::chunks > 0;
  TANDEM_DYNAMIC_SHARED(shared);
  auto* const of_teams = reinterpret_cast<float*>(shared);
  const auto width = static_cast<int>(parts.width);
  float* const dweight = held
                             ? of_teams + threadIdx.y * width
                             : partial + ((std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y) * gridDim.y + blockIdx.y) * width;
  constexpr int bytes_of_sums = vector * static_cast<int>(sizeof(float));  // which lie in either memory
  alignas(widest_access) constexpr float zeros[vector] = {};
  each_vector<Shape>(width, [&](int column, int) { copy_aligned<bytes_of_sums>(dweight + column, zeros); });
  const Element* const weight = parts.weight + std::int64_t{blockIdx.y} * width;
  const std::int64_t teams_apart = parts.weight_groups, blocks_apart = blockDim.y * teams_apart;
  // All teams of a block take as many rounds, as they wait for each other; `there` says which have a part.
  for (std::int64_t first = blockIdx.x * blocks_apart + blockIdx.y; first < parts.count; first += gridDim.x * blocks_apart) {
    const std::int64_t part = first + threadIdx.y * teams_apart;
    const bool there = part < parts.count;
    HeldRow<Element, Shape> x, dy, gate;
    std::int64_t at_gate = 0;
    if (there) {
      x.load(parts.x + part * width, width);
      dy.load(gradients.dy + part * width, width);
      if (gated) {
        at_gate = parts.gate_at(part);
        gate.load(parts.gate + at_gate, width);
      }
    }
    float sums[2] = {};  // of squares; of the weighted gradient times what is not yet divided by the deviation
    if (there)
      each_vector<Shape>(width, [&](int column, int chunk) {
        float values[vector], d[vector], weights[vector], z[vector] = {};
        x.get(column, chunk, values);
        dy.get(column, chunk, d);
        load(weight + column, weights);
        if (gated) gate.get(column, chunk, z);
        for (int i = 0; i < vector; ++i) {
          const float open = gated ? z[i] * sigmoid_fast(z[i]) : 1.0F;
          sums[0] += values[i] * values[i];
          sums[1] += weights[i] * open * d[i] * values[i];
        }
      });
    team_sums(sums);
    if (!there) continue;
    const float inverse = 1 / sqrtf(sums[0] / static_cast<float>(width) + parts.epsilon);
    const float mean = sums[1] * inverse / static_cast<float>(width);
    each_vector<Shape>(width, [&](int column, int chunk) {
      float values[vector], d[vector], weights[vector], z[vector] = {}, dz[vector];
      alignas(widest_access) float summed[vector];
      x.get(column, chunk, values);
      dy.get(column, chunk, d);
      load(weight + column, weights);
      load(dweight + column, summed);
      if (gated) gate.get(column, chunk, z);
      for (int i = 0; i < vector; ++i) {
        const float sigmoid = gated ? sigmoid_fast(z[i]) : 1.0F, open = gated ? z[i] * sigmoid : 1.0F;
        const float normalised = values[i] * inverse;
        summed[i] += d[i] * open * normalised;
        dz[i] = d[i] * weights[i] * normalised * sigmoid * (1 + z[i] * (1 - sigmoid));
        values[i] = inverse * (weights[i] * open * d[i] - normalised * mean);
      }
      copy_aligned<bytes_of_sums>(dweight + column, summed);
      store(gradients.dx + part * width + column, values);
      if (gated) store(gradients.dz + at_gate + column, dz);
    });
  }
  if constexpr (held) {
    __syncthreads();
    float* const of_block = partial + (std::int64_t{blockIdx.x} * gridDim.y + blockIdx.y) * width;
    const auto threads = static_cast<int>(blockDim.x * blockDim.y), teams = static_cast<int>(blockDim.y);
    for (int column = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); column < width; column += threads) {
      float sum = 0;
      for (int team = 0; team < teams; ++team) sum += of_teams[team * width + column];
      of_block[column] = sum;
    }
  }
}

/// How blocks share out the parts of the backward, and what they leave.
struct BackwardGrid {
  std::int64_t slices, partial_sums;  ///< [partial_sums][the weight's shape]
  std::size_t shared_bytes;

  BackwardGrid(std::int64_t parts, std::int64_t weight_groups, std::int64_t width, const RowTeams& teams, bool held)
      : slices(partial_rows(divide_up(parts, weight_groups * teams.teams), weight_groups * teams.threads * teams.teams)),
        partial_sums(held ? slices : slices * teams.teams),
        shared_bytes(held ? static_cast<std::size_t>(teams.teams * width) * sizeof(float) : 0) {}
};

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
          rows_of(x.shape) * attributes.groups,
          attributes.epsilon};
}

/// Whether all parts begin where vectors can be loaded from.
template <typename Element>
bool have_vectors(const Parts<Element>& parts, std::initializer_list<DeviceTensor> tensors) {
  constexpr int vector = vector_of<Element>;
  return parts.width % vector == 0 && parts.gate_columns % vector == 0 && parts.gate_column % vector == 0 &&
         are_aligned(tensors, vector);
}

}  // namespace

void group_norm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  check_shapes(OpKind::group_norm, operands, any);
  const auto& attributes = std::get<GroupNormAttributes>(any);
  const DeviceTensor &x = operands[0], &weight = operands[1], &y = operands.back();
  const DeviceTensor* const gate = operands.size() > 3 ? &operands[2] : nullptr;
  expect_types(of_one_type(x, weight, y) && (gate == nullptr || of_one_type(x, *gate)), "group_norm's operands are of one type");
  const std::int64_t width = columns_of(x.shape) / attributes.groups;
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const auto of = parts_of<Element>(x, weight, gate, attributes);
    const bool aligned = have_vectors<Element>(of, {x, weight, gate == nullptr ? x : *gate, y});
    with_row_teams<Element>(width, aligned, [&]<typename Shape>(Shape, const RowTeams& teams) {
      launch("group_norm", queue, {dim3(teams.blocks(of.count)), teams.block()}, group_norm_kernel<Shape, Element>, of,
             y.template as<Element>());
    });
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
  const std::int64_t width = columns_of(x.shape) / attributes.groups, weights = weight.shape.elements();
  auto* const partial = static_cast<float*>(queue.scratch);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const auto of = parts_of<Element>(x, weight, gate, attributes);
    const PartGradients<Element> gradients{dy.template as<const Element>(), dx.template as<Element>(),
                                           gated ? operands[5].template as<Element>() : nullptr};
    const bool aligned = have_vectors<Element>(of, {x, weight, gated ? *gate : x, dy, dx, gated ? operands[5] : x});
    with_row_teams<Element>(width, aligned, [&]<typename Shape>(Shape, const RowTeams& teams) {
      const BackwardGrid grid(of.count, of.weight_groups, width, teams, Shape::chunks > 0);
      const dim3 blocks(blocks_along_x(grid.slices), static_cast<unsigned>(of.weight_groups));
      launch("group_norm_backward", queue, {blocks, teams.block(), grid.shared_bytes},
             gated ? group_norm_backward_kernel<Shape, true, Element> : group_norm_backward_kernel<Shape, false, Element>, of,
             gradients, partial);
      with_type(dweight.dtype, [&]<typename Gradient>(Type<Gradient>) {
        launch_add_rows("group_norm_backward", queue, partial, grid.partial_sums, weights, dweight.template as<Gradient>());
      });
    });
  });
}

std::size_t group_norm_backward_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const OperandType &x = operands[0], &weight = operands[1];
  const std::int64_t groups = std::get<GroupNormAttributes>(any).groups, width = columns_of(x.shape) / groups;
  std::int64_t most = 0;
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    for (const bool aligned : {false, true})
      with_row_teams<Element>(width, aligned, [&]<typename Shape>(Shape, const RowTeams& teams) {
        const BackwardGrid grid(rows_of(x.shape) * groups, weight.shape.elements() / width, width, teams, Shape::chunks > 0);
        most = std::max(most, grid.partial_sums);
      });
  });
  return static_cast<std::size_t>(most * weight.shape.elements()) * sizeof(float);
}

}  // namespace tandem
