#include "runtime/ops/ssd_scan.h"

#include <initializer_list>

#include "runtime/ops/ssd_sizes.h"

namespace tandem {
namespace {

/// The tensors between the kernels, in bytes, and the products' FLOPs; over all positions, batch and heads.
struct SsdWork {
  Bytes x, keys, sums, dt_in, states, states_stored, products;
  Flops states_flops, products_flops, pairs_flops;
  DType type;

  SsdWork(const SsdSizes& n, DType dtype) : type(dtype) {
    const std::int64_t rows = n.positions * n.batch, element = size_of(dtype), single = size_of(DType::f32);
    x = rows * n.inner() * element;
    keys = rows * n.groups * n.state * element;
    dt_in = rows * n.heads * element;
    sums = rows * n.heads * single;
    const std::int64_t state_elements = n.batch * n.chunks() * n.inner() * n.state;
    states = state_elements * single;
    states_stored = state_elements * element;
    products = rows * n.groups * n.chunk * single;
    const auto d_rows = static_cast<double>(rows);
    states_flops = 2 * d_rows * static_cast<double>(n.inner() * n.state);
    products_flops = 2 * d_rows * static_cast<double>(n.chunk * n.groups * n.state);
    pairs_flops = d_rows * static_cast<double>(n.inner() * (n.chunk + 1));
  }

  OpCost part(Flops flops, std::initializer_list<Bytes> moved) const {
    OpCost cost{.flops = flops, .math = type};
    for (const Bytes bytes : moved) cost.bytes += bytes;
    return cost;
  }
  OpCost cumulative_sums() const { return part(0, {dt_in, 2 * sums}); }
  OpCost chunk_states() const { return part(states_flops, {x, keys, 2 * sums, states}); }
  OpCost state_passing() const { return part(0, {states, states_stored}); }
  OpCost key_products() const { return part(products_flops, {2 * keys, products}); }
};

OpCost sum_of_parts(const std::vector<OpCost>& parts) {
  OpCost sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    sum.flops += parts[i].flops;
    sum.bytes += parts[i].bytes;
  }
  return sum;
}

}  // namespace

std::vector<OpCost> ssd_scan_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, out, y] = unpack<5>(operands, "ssd_scan");
  expect_shapes(y.shape == out.shape, "ssd_scan's outputs are alike");
  const SsdSizes n(mixed.shape, projected.shape, parameters.shape, out.shape, std::get<SsdAttributes>(any));
  const SsdWork w(n, mixed.dtype);
  return {w.cumulative_sums(), w.chunk_states(), w.state_passing(), w.key_products(),
          w.part(w.pairs_flops + w.states_flops,
                 {w.products, w.x, w.x, 2 * w.sums, w.keys, w.states_stored, parameters.bytes(), out.bytes(), y.bytes()})};
}

OpCost ssd_scan_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return sum_of_parts(ssd_scan_parts(operands, any));
}

std::vector<OpCost> ssd_scan_backward_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, y, dout, dmixed, dprojected, dparameters] = unpack<8>(operands, "ssd_scan_backward");
  expect_shapes(dmixed.shape == mixed.shape && dprojected.shape == projected.shape && dparameters.shape == parameters.shape &&
                    y.shape == dout.shape,
                "ssd_scan's gradients are shaped as what they belong to");
  const SsdSizes n(mixed.shape, projected.shape, parameters.shape, y.shape, std::get<SsdAttributes>(any));
  const SsdWork w(n, mixed.dtype);
  const Bytes outputs = w.x;  // as large as x: z, y, dout, and each of their gradients
  return {
      w.cumulative_sums(),
      w.chunk_states(),
      w.state_passing(),
      w.key_products(),
      w.part(0, {outputs, outputs, outputs, outputs, outputs}),     // z: reads z, y, dout; writes dz, dy
      w.part(w.states_flops, {outputs, w.keys, w.sums, w.states}),  // gradients of the states, from the outputs
      w.part(0, {w.states, w.states_stored, w.states}),             // passed back from chunk to chunk
      w.part(w.states_flops + w.pairs_flops,                        // x, dt
             {w.x, outputs, w.products, w.keys, w.states, 2 * w.sums, w.x, w.sums}),
      w.part(w.states_flops, {w.x, w.states, 2 * w.sums, w.keys, w.sums}),                     // B from the states
      w.part(w.states_flops, {outputs, w.states_stored, w.sums, w.keys, w.sums}),              // C from the states
      w.part(w.pairs_flops, {w.x, outputs, 2 * w.sums, w.products}),                           // C B^T
      w.part(w.products_flops, {w.keys, w.products, w.keys, w.keys}),                          // B from C B^T
      w.part(w.products_flops, {w.keys, w.products, w.keys, w.keys}),                          // C from it
      w.part(w.pairs_flops, {w.x, outputs, w.products, 2 * w.sums, w.sums}),                   // the sums L
      w.part(0, {3 * w.sums, w.dt_in, w.dt_in, parameters.bytes(), 2 * dparameters.bytes()}),  // dt and the parameters
  };
}

OpCost ssd_scan_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return sum_of_parts(ssd_scan_backward_parts(operands, any));
}

}  // namespace tandem
