#include "tests/cuda/cases.h"

namespace tandem::studies {

std::vector<OperationCase> muon_cases() {
  std::vector<OperationCase> cases;
  const std::vector<float> square{2.25F};
  for (const DType type : trained_types) {
    for (const auto& [rows, columns] : {std::pair{3, 5}, std::pair{64, 48}}) {
      const Shape shape(rows, columns), gram(rows, rows);
      const auto add = [&](const std::string& name, OpKind kind, const OpAttributes& attributes,
                           const std::vector<CaseOperand>& operands) {
        cases.push_back({join_name(name, name_of(type), rows, columns), kind, attributes, operands});
        cases.push_back(skewed(cases.back()));
      };
      for (const float clip_norm : {0.0F, 1.0F}) {
        add(join_name("muon_momentum_clip", static_cast<int>(clip_norm)), OpKind::muon_momentum,
            MuonAttributes{.clip_norm = clip_norm},
            {read(shape, type, 1), read(Shape(1), DType::f32, square), write(shape, DType::bf16), update(shape, DType::f32, 2)});
      }
      add("muon_normalize", OpKind::muon_normalize, {},
          {read(shape, type, 3), read(Shape(1), DType::f32, square), write(shape, type)});
      add("muon_polynomial", OpKind::muon_polynomial, {}, {read(gram, type, 4), read(gram, type, 5), write(gram, type)});
      add("muon_update", OpKind::muon_update, MuonAttributes{.learning_rate = 0.1F, .scale = 3},
          {read(shape, DType::bf16, 6), write(shape, type), update(shape, DType::f32, 7)});
    }
  }
  return cases;
}

}  // namespace tandem::studies
