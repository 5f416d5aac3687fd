#include "runtime/ops/activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void check_shapes(const Shape& x, const Shape& y, Activation kind) {
  const std::int64_t inputs_per_output = is_gated(kind) ? 2 : 1;
  expect_shapes(rows_of(x) == rows_of(y) && columns_of(x) == inputs_per_output * columns_of(y),
                "activation maps [s,b,2f] (gated) or [s,b,f] to [s,b,f]");
}

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

constexpr float cubic = 0.044715F;
constexpr float sqrt_2_over_pi = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;

float gelu_tanh(float x) { return std::tanh(sqrt_2_over_pi * (x + cubic * x * x * x)); }

float gelu(float x) { return 0.5F * x * (1.0F + gelu_tanh(x)); }

float gelu_derivative(float x) {
  const float tanh = gelu_tanh(x);
  return 0.5F * (1.0F + tanh) + 0.5F * x * (1.0F - tanh * tanh) * sqrt_2_over_pi * (1.0F + 3.0F * cubic * x * x);
}

/// The function that an activation applies to its gates, or to all where it has none, and its derivative.
struct Function {
  float (*value)(float);
  float (*derivative)(float);
};

float silu(float x) { return x * sigmoid(x); }
float silu_derivative(float x) {
  const float s = sigmoid(x);
  return s * (1.0F + x * (1.0F - s));
}
float quick_gelu(float x) { return x * sigmoid(1.702F * x); }
float quick_gelu_derivative(float x) {
  const float s = sigmoid(1.702F * x);
  return s * (1.0F + 1.702F * x * (1.0F - s));
}
float squared_relu(float x) { return x > 0 ? x * x : 0.0F; }
float squared_relu_derivative(float x) { return x > 0 ? 2 * x : 0.0F; }

Function function_of(Activation kind) {
  switch (kind) {
    case Activation::swiglu:
      return {silu, silu_derivative};
    case Activation::gelu:
    case Activation::geglu:
      return {gelu, gelu_derivative};
    case Activation::squared_relu:
      return {squared_relu, squared_relu_derivative};
    case Activation::silu:
      return {silu, silu_derivative};
    case Activation::quick_geglu:
      return {quick_gelu, quick_gelu_derivative};
  }
  throw std::logic_error("an activation without a function");
}

/// A gate, or what has none, and a value within the limit.
float limited_gate(const ActivationAttributes& a, float x) { return a.limit > 0 ? std::min(x, a.limit) : x; }
float limited_value(const ActivationAttributes& a, float x) { return a.limit > 0 ? std::clamp(x, -a.limit, a.limit) : x; }

void activate_row(const ActivationAttributes& a, const float* x, float* y, std::int64_t width) {
  const auto f = function_of(a.kind).value;
  const float* const values = x + width;
  for (std::int64_t i = 0; i < width; ++i)
    y[i] = is_gated(a.kind) ? f(limited_gate(a, x[i])) * (limited_value(a, values[i]) + a.offset) : f(x[i]);
}

void backward_row(const ActivationAttributes& a, const float* x, const float* dy, float* dx, std::int64_t width) {
  const Function f = function_of(a.kind);
  for (std::int64_t i = 0; i < width; ++i) {
    if (!is_gated(a.kind)) {
      dx[i] = dy[i] * f.derivative(x[i]);
      continue;
    }
    const float gate = limited_gate(a, x[i]), value = limited_value(a, x[i + width]);
    dx[i] = gate == x[i] ? dy[i] * f.derivative(gate) * (value + a.offset) : 0.0F;
    dx[i + width] = value == x[i + width] ? dy[i] * f.value(gate) : 0.0F;
  }
}

void check_weights(const Shape& weights, const Shape& y) {
  expect_shapes(rows_of(weights) == rows_of(y) && columns_of(weights) == 1, "a weight [s,b,1] for each row of [s,b,f]");
}

}  // namespace

OpCost activation_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "activation");
  check_shapes(x.shape, y.shape, std::get<ActivationAttributes>(any).kind);
  return memory_cost(bytes_of(x, y));
}

void activation_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<ActivationAttributes>(any);
  const auto [x, y] = unpack<2>(operands, "activation");
  check_shapes(x.shape, y.shape, attributes.kind);
  const std::int64_t inputs = columns_of(x.shape), width = columns_of(y.shape);
  for (std::int64_t row = 0; row < rows_of(y.shape); ++row)
    activate_row(attributes, x.f32() + row * inputs, y.f32() + row * width, width);
}

OpCost activation_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, dy, dx] = unpack<3>(operands, "activation_backward");
  check_shapes(x.shape, dy.shape, std::get<ActivationAttributes>(any).kind);
  expect_shapes(dx.shape == x.shape, "activation's input gradient is shaped as its input");
  return memory_cost(bytes_of(x, dy, dx));
}

void activation_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<ActivationAttributes>(any);
  const auto [x, dy, dx] = unpack<3>(operands, "activation_backward");
  check_shapes(x.shape, dy.shape, attributes.kind);
  const std::int64_t inputs = columns_of(x.shape), width = columns_of(dy.shape);
  for (std::int64_t row = 0; row < rows_of(dy.shape); ++row)
    backward_row(attributes, x.f32() + row * inputs, dy.f32() + row * width, dx.f32() + row * inputs, width);
}

OpCost weighted_activation_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, weights, y] = unpack<3>(operands, "weighted_activation");
  check_shapes(x.shape, y.shape, std::get<ActivationAttributes>(any).kind);
  check_weights(weights.shape, y.shape);
  return memory_cost(bytes_of(x, weights, y));
}

void weighted_activation_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, weights, y] = unpack<3>(operands, "weighted_activation");
  check_weights(weights.shape, y.shape);
  activation_host(std::array{x, y}, any);
  const std::int64_t width = columns_of(y.shape);
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) y.f32()[i] *= weights.f32()[i / width];
}

OpCost weighted_activation_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, weights, dy, dx, dweights] = unpack<5>(operands, "weighted_activation_backward");
  check_shapes(x.shape, dy.shape, std::get<ActivationAttributes>(any).kind);
  check_weights(weights.shape, dy.shape);
  expect_shapes(dx.shape == x.shape && dweights.shape == weights.shape, "activation's gradients are shaped as its inputs");
  return memory_cost(bytes_of(x, weights, dy, dx, dweights));
}

void weighted_activation_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<ActivationAttributes>(any);
  const auto [x, weights, dy, dx, dweights] = unpack<5>(operands, "weighted_activation_backward");
  check_weights(weights.shape, dy.shape);
  activation_backward_host(std::array{x, dy, dx}, any);
  const std::int64_t inputs = columns_of(x.shape), width = columns_of(dy.shape);
  std::vector<float> activated(static_cast<std::size_t>(width));
  for (std::int64_t row = 0; row < rows_of(dy.shape); ++row) {
    float* const gradient = dx.f32() + row * inputs;
    for (std::int64_t i = 0; i < inputs; ++i) gradient[i] *= weights.f32()[row];
    activate_row(attributes, x.f32() + row * inputs, activated.data(), width);
    const float* const of_row = dy.f32() + row * width;
    const auto product = [&](std::int64_t i) { return double{activated[static_cast<std::size_t>(i)]} * double{of_row[i]}; };
    dweights.f32()[row] = static_cast<float>(sum_of(width, product));
  }
}

}  // namespace tandem
