#include "tests/cuda/cases.h"

namespace tandem::studies {

std::vector<OperationCase> bias_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types)
    for (const Shape& shape : {Shape(5, 3, 64), Shape(40, 1, 37), Shape(1, 1, 1), Shape(70, 2, 160)}) {
      const Shape of_bias(shape[2], 1);
      const auto name = [&](const std::string& operation, DType gradient) {
        return join_name(operation, name_of(type), name_of(gradient), shape[0], shape[2]);
      };
      cases.push_back(
          {name("add_bias", type), OpKind::add_bias, std::monostate{}, {read(of_bias, type, 1), update(shape, type, 2)}});
      if (type != DType::f32)
        cases.push_back({name("add_bias_to", DType::f32),
                         OpKind::add_bias,
                         std::monostate{},
                         {read(of_bias, type, 1), update(shape, DType::f32, 2)}});
      std::vector<DType> gradients{DType::f32};
      if (type != DType::f32) gradients.push_back(type);
      for (const DType gradient : gradients)
        cases.push_back({name("bias_gradient", gradient),
                         OpKind::bias_gradient,
                         std::monostate{},
                         {read(shape, type, 3), update(of_bias, gradient, 4)}});
    }
  for (const DType type : trained_types) {
    const GroupedGemmAttributes of_experts{.rows = {5, 0, 7, 33}};
    const Shape shape(45, 64), of_bias(4 * 64, 1);
    cases.push_back({join_name("add_bias_of_experts", name_of(type)),
                     OpKind::add_bias,
                     of_experts,
                     {read(of_bias, type, 1), update(shape, type, 2)}});
    cases.push_back({join_name("bias_gradient_of_experts", name_of(type)),
                     OpKind::bias_gradient,
                     of_experts,
                     {read(shape, type, 3), update(of_bias, DType::f32, 4)}});
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  return cases;
}

}  // namespace tandem::studies
