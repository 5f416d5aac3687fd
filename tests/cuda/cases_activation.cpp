#include "tests/cuda/cases.h"

namespace tandem::studies {

std::vector<OperationCase> activation_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    for (const auto& [kind, name] : {std::pair(Activation::swiglu, "swiglu"), std::pair(Activation::gelu, "gelu"),
                                     std::pair(Activation::geglu, "geglu"), std::pair(Activation::squared_relu, "squared_relu"),
                                     std::pair(Activation::silu, "silu"), std::pair(Activation::quick_geglu, "quick_geglu")}) {
      const float limit = kind == Activation::geglu || kind == Activation::quick_geglu ? 2.0F : 0.0F;
      const ActivationAttributes attributes{kind, limit, limit / 2};
      for (const int width : {1, 8, 37, 264, 2056}) {
        const Shape x(3, 2, is_gated(kind) ? 2 * width : width), y(3, 2, width);
        const std::vector<float> in = random_numbers(x, 1, 6);
        cases.push_back({join_name("activation", name, name_of(type), width),
                         OpKind::activation,
                         attributes,
                         {read(x, type, in), write(y, type)}});
        cases.push_back({join_name("activation_backward", name, name_of(type), width),
                         OpKind::activation_backward,
                         attributes,
                         {read(x, type, in), read(y, type, 2), write(x, type)}});
        const Shape per_row(3, 2, 1);
        const CaseOperand weights = read(per_row, DType::f32, 3);
        cases.push_back({join_name("weighted_activation", name, name_of(type), width),
                         OpKind::weighted_activation,
                         attributes,
                         {read(x, type, in), weights, write(y, type)}});
        cases.push_back({join_name("weighted_activation_backward", name, name_of(type), width),
                         OpKind::weighted_activation_backward,
                         attributes,
                         {read(x, type, in), weights, read(y, type, 2), write(x, type), write(per_row, DType::f32)}});
      }
    }
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  const Shape extremes(6);
  cases.push_back(
      {"activation_of_extremes",
       OpKind::activation,
       ActivationAttributes{Activation::gelu},
       {read(extremes, DType::f32, std::vector{-100.0F, 100.0F, -20.0F, 20.0F, 0.0F, -0.0F}), write(extremes, DType::f32)}});
  return cases;
}

}  // namespace tandem::studies
