#include "runtime/ops/delta_rule.h"

#include <initializer_list>

#include "runtime/ops/delta_sizes.h"

namespace tandem {
namespace {

/// The tensors between the kernels, in bytes, and the products' FLOPs; over all positions, batch and heads.
struct DeltaWork {
  Bytes keys, values, wide_keys, sums, gates, weights, inverse, states;
  Flops of_states, chunk_by_keys, chunk_by_values, chunk_by_chunk;
  DType type;

  DeltaWork(const DeltaSizes& n, DType dtype) : type(dtype) {
    const std::int64_t rows = n.positions * n.batch, element = size_of(dtype), single = size_of(DType::f32);
    keys = rows * n.key_heads * n.key_dim * element;
    values = rows * n.heads * n.value_dim * element;
    wide_keys = rows * n.heads * n.key_dim * element;
    gates = rows * n.heads * element;
    sums = rows * n.heads * single;
    weights = rows * n.heads * n.chunk * single;
    inverse = rows * n.heads * n.chunk * element;
    states = n.batch * n.chunks() * n.heads * n.key_dim * n.value_dim * element;
    const auto heads = static_cast<double>(rows * n.heads), c = static_cast<double>(n.chunk);
    of_states = 2 * heads * static_cast<double>(n.key_dim * n.value_dim);
    chunk_by_keys = 2 * heads * c * static_cast<double>(n.key_dim);
    chunk_by_values = 2 * heads * c * static_cast<double>(n.value_dim);
    chunk_by_chunk = heads * c * c;
  }

  OpCost part(Flops flops, std::initializer_list<Bytes> moved) const {
    OpCost cost{.flops = flops, .math = type};
    for (const Bytes bytes : moved) cost.bytes += bytes;
    return cost;
  }
  OpCost lengths() const { return part(0, {keys, keys}); }
  OpCost gating() const { return part(0, {2 * gates, 2 * sums}); }
  OpCost cumulative_sums() const { return part(0, {2 * sums}); }
  OpCost key_products() const { return part(chunk_by_keys, {keys, 2 * sums, weights}); }
  OpCost solve() const { return part(chunk_by_chunk / 3, {weights, inverse}); }
  OpCost through_inverse() const {
    return part(chunk_by_keys + chunk_by_values, {keys, values, 2 * sums, inverse, wide_keys, values});
  }
  OpCost pass_states() const { return part(2 * of_states, {keys, wide_keys, values, sums, states, values}); }
};

OpCost total_of(const std::vector<OpCost>& parts) {
  OpCost sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    sum.flops += parts[i].flops;
    sum.bytes += parts[i].bytes;
  }
  return sum;
}

}  // namespace

std::vector<OpCost> delta_rule_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, out] = unpack<4>(operands, "delta_rule");
  const DeltaSizes n(mixed.shape, projected.shape, parameters.shape, out.shape, std::get<DeltaRuleAttributes>(any));
  const DeltaWork w(n, mixed.dtype);
  return {w.gating(),
          w.lengths(),
          w.lengths(),
          w.cumulative_sums(),
          w.key_products(),
          w.solve(),
          w.through_inverse(),
          w.pass_states(),
          w.part(w.of_states + w.chunk_by_keys + w.chunk_by_values, {w.keys, w.keys, w.values, w.states, w.sums, out.bytes()})};
}

OpCost delta_rule_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return total_of(delta_rule_parts(operands, any));
}

std::vector<OpCost> delta_rule_backward_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [mixed, projected, parameters, dout, dmixed, dprojected, dparameters] = unpack<7>(operands, "delta_rule_backward");
  expect_shapes(dmixed.shape == mixed.shape && dprojected.shape == projected.shape && dparameters.shape == parameters.shape,
                "delta_rule's gradients are shaped as what they belong to");
  const DeltaSizes n(mixed.shape, projected.shape, parameters.shape, dout.shape, std::get<DeltaRuleAttributes>(any));
  const DeltaWork w(n, mixed.dtype);
  return {
      w.gating(),
      w.lengths(),
      w.lengths(),
      w.cumulative_sums(),
      w.key_products(),
      w.solve(),
      w.through_inverse(),
      w.pass_states(),
      // of U, from the outputs of its chunk
      w.part(w.chunk_by_keys + w.chunk_by_values, {w.keys, w.keys, w.sums, w.values, w.values}),
      // of the states, and of U from them, from the last chunk to the first
      w.part(3 * w.of_states, {w.keys, w.keys, w.wide_keys, w.sums, w.values, w.values, w.states, w.values}),
      // of q, k, G and what the inverse made of the keys
      w.part(3 * w.of_states + w.chunk_by_values + 2 * w.chunk_by_keys,
             {w.keys, w.keys, w.values, w.values, w.values, 2 * w.states, w.sums, 3 * w.wide_keys, w.sums}),
      // of k, v, w and G through the inverse
      w.part(4 * w.chunk_by_keys + 2 * w.chunk_by_values + 4 * w.chunk_by_chunk,
             {w.keys, w.values, 2 * w.sums, w.inverse, w.wide_keys, w.values, w.wide_keys, w.values, 2 * w.sums}),
      w.cumulative_sums(),
      // of what the lengths divided; of b, a and the parameters
      w.part(0, {w.keys, w.wide_keys, w.keys}),
      w.part(0, {w.keys, w.wide_keys, w.keys}),
      w.part(0, {2 * w.sums, 4 * w.gates, parameters.bytes(), 2 * dparameters.bytes()}),
  };
}

OpCost delta_rule_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return total_of(delta_rule_backward_parts(operands, any));
}

}  // namespace tandem
