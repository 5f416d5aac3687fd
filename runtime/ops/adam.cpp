#include "runtime/ops/adam.h"

#include <cmath>

#include "runtime/ops/clip.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

template <typename OperandT>
std::array<OperandT, 6> operands_of_adam(std::span<const OperandT> operands) {
  const auto all = unpack<6>(operands, "adam");
  const auto& [grad, norm_square, param, master, m, v] = all;
  for (const Shape& shape : {param.shape, master.shape, m.shape, v.shape})
    expect_shapes(shape.elements() == grad.shape.elements(), "adam needs equally many gradients, parameters and states");
  expect_shapes(norm_square.shape.elements() == 1, "adam needs one squared gradient norm");
  return all;
}

}  // namespace

OpCost adam_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [grad, norm_square, param, master, m, v] = operands_of_adam(operands);
  return memory_cost(bytes_of(grad, norm_square, param) + 2 * bytes_of(master, m, v));
}

void adam_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdamAttributes>(any);
  const auto [grad, norm_square, param, master, m, v] = operands_of_adam(operands);
  const float clip = clip_factor(*norm_square.f32(), attributes.clip_norm);
  const float beta1 = attributes.beta1, beta2 = attributes.beta2;
  const auto correction1 = static_cast<float>(1 / (1 - std::pow(double{beta1}, attributes.step)));
  const auto correction2 = static_cast<float>(1 / (1 - std::pow(double{beta2}, attributes.step)));
  float *first = m.f32(), *second = v.f32(), *weight = master.f32(), *parameter = param.f32();
  for (std::int64_t i = 0; i < grad.shape.elements(); ++i) {
    const float g = clip * grad.f32()[i];
    first[i] = beta1 * first[i] + (1 - beta1) * g;
    second[i] = beta2 * second[i] + (1 - beta2) * g * g;
    const float step = correction1 * first[i] / (std::sqrt(correction2 * second[i]) + attributes.epsilon);
    weight[i] -= attributes.learning_rate * (step + attributes.weight_decay * weight[i]);
    parameter[i] = weight[i];
  }
}

}  // namespace tandem
