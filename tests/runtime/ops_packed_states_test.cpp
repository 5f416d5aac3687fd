// Kernels that pass a state from token to token leave of packed sequences what they leave of each document alone.

#include <gtest/gtest.h>

#include <vector>

#include "runtime/ops/documents.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_packed_states_test {
namespace {

constexpr std::int64_t sequence = 24, batch = 2;

/// Whole, and in parts: documents of one token, some that begin and end with a chunk of 4, some within it.
const Documents whole{.sequence = sequence, .starts = {0, 5, 6, 8, 24, 28, 45}};
const Documents in_parts{.sequence = sequence, .parts = 4, .starts = {0, 8, 12, 24, 28, 44}};

struct Row {
  std::int64_t sequence, position;
};

/// The rows of a document's tokens, in their order, by the definition of `Documents`.
std::vector<Row> rows_of_document(const Documents& documents, std::size_t document) {
  const std::int64_t start = documents.starts[document];
  const std::int64_t end = document + 1 < documents.starts.size() ? documents.starts[document + 1] : batch * sequence;
  const std::int64_t of = start / sequence, offset = start % sequence / documents.parts, length = (end - start) / documents.parts;
  std::vector<Row> rows;
  for (std::int64_t part = 0; part < documents.parts; ++part)
    for (std::int64_t i = 0; i < length; ++i) rows.push_back({of, part * (sequence / documents.parts) + offset + i});
  return rows;
}

Tensor rows_of_tensor(const Tensor& from, const std::vector<Row>& rows) {
  const std::int64_t width = from.shape[2];
  Tensor result(Shape(static_cast<std::int64_t>(rows.size()), 1, width));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::int64_t c = 0; c < width; ++c)
      result[static_cast<std::int64_t>(i) * width + c] = from[(rows[i].position * batch + rows[i].sequence) * width + c];
  return result;
}

/// An operand with a row for each position, or one of parameters.
struct StateOperand {
  Tensor tensor;
  bool of_rows = true;
  bool written = false;
};

/// Runs the operation on packed sequences, then on each document alone; gradients of parameters add up.
template <typename Attributes>
void expect_documents_alone(OpKind kind, Attributes attributes, const Documents& documents, std::vector<StateOperand> operands) {
  SCOPED_TRACE(operation(kind).name);
  std::vector<StateOperand> alone = operands;
  const auto run_on = [&](std::vector<StateOperand>& on) {
    std::vector<HostTensor> tensors;
    for (StateOperand& operand : on) tensors.push_back(operand.tensor.host());
    operation(kind).host(tensors, attributes);
  };
  for (std::size_t document = 0; document < documents.starts.size(); ++document) {
    const std::vector<Row> rows = rows_of_document(documents, document);
    std::vector<StateOperand> own = alone;
    for (StateOperand& operand : own)
      if (operand.of_rows) operand.tensor = rows_of_tensor(operand.tensor, rows);
    run_on(own);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!own[i].written) continue;
      if (!own[i].of_rows) {
        alone[i].tensor = own[i].tensor;  // which are added to
        continue;
      }
      const std::int64_t width = own[i].tensor.shape[2];
      for (std::size_t row = 0; row < rows.size(); ++row)
        for (std::int64_t c = 0; c < width; ++c)
          alone[i].tensor[(rows[row].position * batch + rows[row].sequence) * width + c] =
              own[i].tensor[static_cast<std::int64_t>(row) * width + c];
    }
  }
  attributes.documents = documents;
  run_on(operands);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    SCOPED_TRACE(i);
    if (operands[i].written) expect_close(operands[i].tensor, alone[i].tensor, 2e-6);
  }
}

StateOperand rows(std::int64_t width, unsigned seed) { return {random_tensor(Shape(sequence, batch, width), seed)}; }
StateOperand written(std::int64_t width) { return {Tensor(Shape(sequence, batch, width), 0.0F), true, true}; }
StateOperand parameters(const Shape& shape, unsigned seed, bool is_written = false) {
  return {random_tensor(shape, seed), false, is_written};
}

TEST(PackedStates, ConvolutionsBeginWithEachDocument) {
  const CausalConvAttributes conv{.first_column = 1, .row = {2, 0, 0}, .rows = {3, 2, 0}, .biased = true};
  for (const Documents& documents : {whole, in_parts}) {
    expect_documents_alone(OpKind::causal_conv, conv, documents, {rows(7, 1), parameters(Shape(5, 5), 2), written(5)});
    expect_documents_alone(OpKind::causal_conv_backward, conv, documents,
                           {rows(7, 1), parameters(Shape(5, 5), 2), rows(5, 3), written(7), parameters(Shape(5, 5), 4, true)});
  }
}

TEST(PackedStates, ScansBeginWithEachDocument) {
  const SsdAttributes scan{.head_dim = 3, .groups = 2, .state = 5, .chunk = 4, .first_head = 1};
  constexpr std::int64_t inner = 4 * 3, mixed = inner + 2 * 2 * 5, projected = inner + mixed + 4;
  const Shape of_heads(3 * 6, 1);
  for (const Documents& documents : {whole, in_parts}) {
    expect_documents_alone(OpKind::ssd_scan, scan, documents,
                           {rows(mixed, 1), rows(projected, 2), parameters(of_heads, 3), written(inner), written(inner)});
    expect_documents_alone(OpKind::ssd_scan_backward, scan, documents,
                           {rows(mixed, 1), rows(projected, 2), parameters(of_heads, 3), rows(inner, 4), rows(inner, 5),
                            written(mixed), written(projected), parameters(of_heads, 6, true)});
  }
}

TEST(PackedStates, DeltaRulesBeginWithEachDocument) {
  const DeltaRuleAttributes rule{.key_heads = 2, .key_dim = 5, .value_dim = 3, .chunk = 4, .first_head = 1};
  constexpr std::int64_t inner = 4 * 3, mixed = 2 * 2 * 5 + inner, projected = mixed + inner + 2 * 4;
  const Shape of_heads(2 * 6, 1);
  for (const Documents& documents : {whole, in_parts}) {
    expect_documents_alone(OpKind::delta_rule, rule, documents,
                           {rows(mixed, 1), rows(projected, 2), parameters(of_heads, 3), written(inner)});
    expect_documents_alone(OpKind::delta_rule_backward, rule, documents,
                           {rows(mixed, 1), rows(projected, 2), parameters(of_heads, 3), rows(inner, 4), written(mixed),
                            written(projected), parameters(of_heads, 5, true)});
  }
}

}  // namespace
}  // namespace tandem::ops_packed_states_test
