#include "runtime/ops/expert_bias.h"

#include <numeric>

#include "runtime/ops/operands.h"
#include "runtime/ops/routing.h"

namespace tandem {
namespace {

void check_counts(const Shape& counts, const Shape& slots, const RoutingAttributes& attributes) {
  expect_shapes(counts.elements() == static_cast<std::int64_t>(attributes.slots.size()) && columns_of(slots) == attributes.top_k,
                "count_choices needs slots [T,k] and counts [E]");
}

void check_biases(const Shape& counts, const Shape& bias) {
  expect_shapes(counts.elements() == bias.elements() && columns_of(counts) == columns_of(bias),
                "update_expert_bias needs counts and biases [L,E]");
}

}  // namespace

OpCost count_choices_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [slots, counts] = unpack<2>(operands, "count_choices");
  check_counts(counts.shape, slots.shape, std::get<RoutingAttributes>(any));
  return memory_cost(bytes_of(slots, counts, counts));
}

void count_choices_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [slots, counts] = unpack<2>(operands, "count_choices");
  check_counts(counts.shape, slots.shape, attributes);
  const std::vector<std::int32_t> offsets = offsets_in_block(attributes);
  for (std::int64_t choice = 0; choice < slots.shape.elements(); ++choice)
    counts.f32()[expert_of(slots.i32()[choice], attributes, offsets)] += 1;
}

OpCost update_expert_bias_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [counts, bias] = unpack<2>(operands, "update_expert_bias");
  check_biases(counts.shape, bias.shape);
  return memory_cost(bytes_of(counts, bias, bias));
}

void update_expert_bias_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const float rate = std::get<ScaleAttributes>(any).factor;
  const auto [counts, bias] = unpack<2>(operands, "update_expert_bias");
  check_biases(counts.shape, bias.shape);
  const std::int64_t experts = columns_of(counts.shape);
  for (std::int64_t first = 0; first < counts.shape.elements(); first += experts) {
    const float* const of_layer = counts.f32() + first;
    const float mean = std::accumulate(of_layer, of_layer + experts, 0.0F) / static_cast<float>(experts);
    for (std::int64_t e = 0; e < experts; ++e) {
      const float missing = mean - of_layer[e];
      bias.f32()[first + e] += missing > 0 ? rate : missing < 0 ? -rate : 0.0F;
    }
  }
}

}  // namespace tandem
