#include "runtime/ops/adafactor.h"
#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

/// More pieces than a launch takes, whole and cut either way; the slice ends inside the first and the last, and one is so large
/// that several blocks walk over it, each from row to row. `vectors`: rows are made of whole vectors.
AdafactorAttributes pieces_in_a_slice(bool factored, bool vectors) {
  AdafactorAttributes attributes{.weight_decay = 0.1F, .step = 3, .factored = factored, .first = vectors ? 8 : 7};
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    AdafactorPiece piece{
        .offset = offset, .rows = vectors ? 4 * (1 + i % 2) : 3 + i % 4, .columns = (vectors ? 12 : 5) + 40 * (i % 3 == 0)};
    if (i == 5) piece.rows = vectors ? 36 : 31, piece.columns = vectors ? 300 : 301;
    piece.tensor_rows = piece.rows * (i % 3 == 1 ? 2 : 1);
    piece.tensor_columns = piece.columns * (i % 3 == 2 ? 2 : 1);
    piece.copies = i % 3 == 0 ? 2 : 1;
    offset += piece.rows * piece.columns;
    attributes.pieces.push_back(piece);
  }
  return attributes;
}

}  // namespace

std::vector<OperationCase> adafactor_cases() {
  std::vector<OperationCase> cases;
  const std::vector<float> square{2.25F};
  for (const auto& [factored, vectors] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    const AdafactorAttributes attributes = pieces_in_a_slice(factored, vectors);
    const AdafactorLayout layout(attributes);
    const AdafactorPiece& last = attributes.pieces.back();
    const Shape slice(last.offset + last.rows * last.columns - attributes.first - 2),
        sums(std::max<std::int64_t>(layout.sums, 1)), state(factored ? layout.factors() : slice[0]), squares(2 * layout.tensors);
    const CaseOperand norm = read(Shape(1), DType::f32, square);
    for (const DType type : trained_types) {
      const auto add = [&](const std::string& name, OpKind kind, const std::vector<CaseOperand>& operands) {
        cases.push_back({join_name(name, factored ? "factored" : "whole", vectors ? "vectors" : "odd", name_of(type)), kind,
                         attributes, operands});
        cases.push_back(skewed(cases.back()));
      };
      const CaseOperand grad = read(slice, type, 1);
      CaseOperand positive = read(state, DType::f32, std::vector<float>(static_cast<std::size_t>(state.elements())));
      for (std::size_t i = 0; i < positive.numbers.size(); ++i) positive.numbers[i] = 0.1F + 0.01F * static_cast<float>(i % 17);
      CaseOperand moved = positive;
      moved.access = Access::update;
      if (factored && !vectors) {
        add("adafactor_sums", OpKind::adafactor_sums, {grad, norm, write(sums, DType::f32)});
        CaseOperand added = read(sums, DType::f32, std::vector<float>(static_cast<std::size_t>(sums.elements()), 0.75F));
        add("adafactor_factors", OpKind::adafactor_factors, {added, moved});
      } else if (!factored) {
        add("adafactor_variance", OpKind::adafactor_variance, {grad, norm, moved});
      }
      add("adafactor_norms", OpKind::adafactor_norms,
          {grad, norm, positive, read(slice, DType::f32, 2), write(squares, DType::f32)});
      const std::vector<float> norms(static_cast<std::size_t>(squares.elements()), 30.0F);
      add("adafactor_update", OpKind::adafactor_update,
          {grad, norm, positive, read(squares, DType::f32, norms), write(slice, type), update(slice, DType::f32, 3)});
    }
  }
  return cases;
}

}  // namespace tandem::studies
