#include "runtime/timed_operands.h"

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// Scattered over the rank's part of a vocabulary, as tokens are.
std::vector<std::int32_t> tokens(std::int64_t count, std::int64_t first, std::int64_t vocabulary) {
  constexpr std::uint64_t step = 2654435761;  // Knuth's multiplicative hash: a prime near 2^32 / golden ratio
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t place = static_cast<std::uint64_t>(i) * step % static_cast<std::uint64_t>(vocabulary);
    ids.push_back(static_cast<std::int32_t>(first + static_cast<std::int64_t>(place)));
  }
  return ids;
}

/// Of so many selections, each over all elements, ascending.
std::vector<std::int32_t> spread_selections(const Shape& selections, std::int64_t elements) {
  std::vector<std::int32_t> indices;
  for (std::int64_t i = 0; i < selections.elements(); ++i)
    indices.push_back(static_cast<std::int32_t>(i % selections[1] * elements / selections[1]));
  return indices;
}

/// Of each query, over so many keys, ascending.
std::vector<std::int32_t> spread_keys(const Shape& chosen, std::int64_t keys) {
  std::vector<std::int32_t> numbers;
  const std::int64_t most = chosen[2];
  for (std::int64_t i = 0; i < chosen.elements(); ++i) numbers.push_back(static_cast<std::int32_t>(i % most * keys / most));
  return numbers;
}

/// Each choice in a row of its own as long as there are any; the others are dropped.
std::vector<std::int32_t> slots_in_order(std::int64_t choices, std::int64_t rows) {
  std::vector<std::int32_t> slots;
  for (std::int64_t i = 0; i < choices; ++i) slots.push_back(static_cast<std::int32_t>(i < rows ? i : -1));
  return slots;
}

/// Slots that `route` makes of scattered logits [tokens, experts], whatever the biases.
std::vector<std::int32_t> routed_slots(const OperandType& logits, const OperandType& slots, const OpAttributes& attributes) {
  RoutingAttributes unbiased = std::get<RoutingAttributes>(attributes);
  unbiased.biased = false;
  std::vector<float> values, gates(static_cast<std::size_t>(slots.shape.elements()));
  for (const std::int32_t value : tokens(logits.shape.elements(), 0, 1 << 16))
    values.push_back(static_cast<float>(value) * 1e-4F);
  std::vector<std::int32_t> dealt(gates.size());
  const std::vector<HostTensor> operands{{values.data(), logits.shape}, {gates.data(), slots.shape}, {dealt.data(), slots.shape}};
  operation(OpKind::route).host(operands, unbiased);
  return dealt;
}

}  // namespace

std::vector<std::vector<std::int32_t>> integer_contents(const TimedKernel& kernel) {
  const std::vector<OperandType>& operands = kernel.operands;
  std::vector<std::vector<std::int32_t>> contents(operands.size());
  const auto elements = [&](std::size_t i) { return operands[i].shape.elements(); };
  const auto slots = [&](std::size_t of, std::size_t rows) {
    contents[of] = slots_in_order(elements(of), rows_of(operands[rows].shape));
  };
  switch (kernel.op) {
    case OpKind::embedding:
    case OpKind::embedding_backward: {
      const std::size_t table = kernel.op == OpKind::embedding ? 1 : 2;
      const std::int64_t first = std::get<EmbeddingAttributes>(kernel.attributes).vocab_start;
      contents[0] = tokens(elements(0), first, rows_of(operands[table].shape));
      break;
    }
    case OpKind::cross_entropy_target:
    case OpKind::cross_entropy_backward:
      contents[1] =
          tokens(elements(1), std::get<CrossEntropyAttributes>(kernel.attributes).vocab_start, columns_of(operands[0].shape));
      break;
    case OpKind::permute:
      slots(1, 2);
      break;
    case OpKind::permute_backward:
    case OpKind::combine:
      slots(1, 0);
      break;
    case OpKind::combine_backward:
      slots(2, 1);
      break;
    case OpKind::route_backward:
      contents[1] = routed_slots(operands[0], operands[1], kernel.attributes);
      break;
    case OpKind::count_choices:
      contents[0] = routed_slots({.shape = Shape(rows_of(operands[0].shape), elements(1))}, operands[0], kernel.attributes);
      break;
    case OpKind::count_by_sequence:
      contents[0] = routed_slots({.shape = Shape(rows_of(operands[0].shape), columns_of(operands[1].shape))}, operands[0],
                                 kernel.attributes);
      break;
    case OpKind::sparse_attention:
    case OpKind::sparse_attention_backward:
    case OpKind::index_target:
      contents[2] = spread_keys(operands[2].shape, operands[1].shape[0]);
      break;
    case OpKind::index_loss_backward:
      contents[3] = spread_keys(operands[3].shape, operands[1].shape[0]);
      break;
    case OpKind::sparse_sum:
      contents[1] = spread_selections(operands[1].shape, elements(2));
      break;
    default:
      break;
  }
  return contents;
}

}  // namespace tandem
