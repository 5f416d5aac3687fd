#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/sigmoid_gate.h"

// Each moves the bytes of its cost. Where a gate has many neighbours, a block sums up what its gradient is made of.
namespace tandem {
namespace {

TANDEM_DEVICE float open_share(float z) { return 1 / (1 + expf(-z)); }

template <typename Element>
struct GatedColumns {
  static constexpr int vector = 1;
  const Element *x, *z;
  Element* y;
  std::int64_t neighbours;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    y[i] = from_float<Element>(to_float(x[i]) * open_share(to_float(z[i / neighbours])));
  }
};

/// A gate for each column.
template <typename Element>
struct GatedColumnsBackward {
  static constexpr int vector = 1;
  const Element *x, *z, *dy;
  Element *dx, *dz;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const float open = open_share(to_float(z[i])), gradient = to_float(dy[i]);
    dz[i] = from_float<Element>(gradient * to_float(x[i]) * open * (1 - open));
    dx[i] = from_float<Element>(gradient * open);
  }
};

constexpr int threads_of_gate = 128;

template <typename Element>
__global__ void gate_of_neighbours_backward_kernel(const Element* x, const Element* z, const Element* dy, Element* dx,
                                                   Element* dz, std::int64_t neighbours) {
  const std::int64_t gate = blockIdx.x, first = gate * neighbours;
  const float open = open_share(to_float(z[gate]));
  float sum = 0;
  for (std::int64_t i = first + threadIdx.x; i < first + neighbours; i += blockDim.x) {
    const float gradient = to_float(dy[i]);
    sum += gradient * to_float(x[i]);
    dx[i] = from_float<Element>(gradient * open);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) dz[gate] = from_float<Element>(sum * open * (1 - open));
}

}  // namespace

void sigmoid_gate_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, z, y] = checked<3>(OpKind::sigmoid_gate, operands, any);
  expect_types(of_one_type(x, z, y), "a gate's operands are of one type");
  with_type(x.dtype, [&, x = x, z = z, y = y]<typename Element>(Type<Element>) {
    const GatedColumns<Element> body{x.template as<const Element>(), z.template as<const Element>(), y.template as<Element>(),
                                     columns_of(x.shape) / columns_of(z.shape)};
    launch_elementwise("sigmoid_gate", queue, x.shape.elements(), false, body);
  });
}

void sigmoid_gate_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  constexpr auto name = "sigmoid_gate_backward";
  const auto [x, z, dy, dx, dz] = checked<5>(OpKind::sigmoid_gate_backward, operands, any);
  expect_types(of_one_type(x, z, dy, dx, dz), "a gate's operands are of one type");
  with_type(x.dtype, [&, x = x, z = z, dy = dy, dx = dx, dz = dz]<typename Element>(Type<Element>) {
    const auto *const in = x.template as<const Element>(), *const gate = z.template as<const Element>();
    const auto* const gradient = dy.template as<const Element>();
    auto *const to_input = dx.template as<Element>(), *const to_gate = dz.template as<Element>();
    const std::int64_t gates = z.shape.elements(), neighbours = columns_of(x.shape) / columns_of(z.shape);
    if (neighbours == 1) {
      const GatedColumnsBackward<Element> body{in, gate, gradient, to_input, to_gate};
      launch_elementwise(name, queue, gates, false, body);
      return;
    }
    launch(name, queue, {dim3(blocks_along_x(gates)), dim3(threads_of_gate)}, gate_of_neighbours_backward_kernel<Element>, in,
           gate, gradient, to_input, to_gate, neighbours);
  });
}

}  // namespace tandem
