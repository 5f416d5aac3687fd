#include "runtime/ops/window_select.h"

#include <algorithm>

#include "runtime/ops/operands.h"
#include "runtime/ops/sparse_attention.h"

namespace tandem {
namespace {

struct WindowChoices {
  const SparseAttentionAttributes& attributes;
  std::int64_t micro_batch, queries, most, listed;  ///< listed: compressed keys that are named for a query, or 0

  WindowChoices(const Shape* compressed, const Shape& chosen, const OpAttributes& any)
      : attributes(std::get<SparseAttentionAttributes>(any)),
        micro_batch(chosen[0]),
        queries(chosen[1]),
        most(chosen[2]),
        listed(compressed == nullptr ? 0 : columns_of(*compressed)) {
    expect_shapes(attributes.queries.count() == queries && attributes.window > 0, "window_select needs a window for each query");
    expect_shapes(compressed == nullptr || *compressed == Shape(micro_batch, queries, most - attributes.window),
                  "window_select lists a window and compressed keys");
  }
};

/// The last operand is what is chosen; before it may stand what was.
template <typename Operand>
WindowChoices window_choices(std::span<const Operand> operands, const OpAttributes& any) {
  expect_shapes(operands.size() == 1 || operands.size() == 2, "window_select has one operand or two");
  return {operands.size() == 2 ? &operands[0].shape : nullptr, operands.back().shape, any};
}

}  // namespace

OpCost window_select_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  window_choices(operands, any);
  Bytes bytes = 0;
  for (const OperandType& operand : operands) bytes += operand.bytes();
  return memory_cost(bytes);
}

void window_select_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const WindowChoices n = window_choices(operands, any);
  const std::int32_t singles = n.attributes.keys.length[0];
  for (std::int64_t row = 0; row < n.micro_batch * n.queries; ++row) {
    const std::int32_t query = n.attributes.queries.at(static_cast<std::int32_t>(row % n.queries));
    std::int32_t* to = operands.back().i32() + row * n.most;
    std::int32_t* const end = to + n.most;
    for (std::int32_t key = std::max(0, query - n.attributes.window + 1); key <= query; ++key) *to++ = key;
    if (n.listed > 0) {
      const std::int32_t* const names = operands[0].i32() + row * n.listed;
      for (std::int64_t j = 0; j < n.listed && names[j] >= 0; ++j) *to++ = singles + names[j];
    } else {
      const auto seen = std::min<std::int64_t>((query + 1) / n.attributes.ratio, n.most - n.attributes.window);
      for (std::int32_t j = 0; j < seen; ++j) *to++ = singles + j;
    }
    std::fill(to, end, -1);
  }
}

}  // namespace tandem
