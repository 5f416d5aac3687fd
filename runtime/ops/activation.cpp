#include "runtime/ops/activation.h"

#include <cmath>
#include <numbers>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

void check_shapes(const Shape& x, const Shape& y, Activation kind) {
  const std::int64_t inputs_per_output = kind == Activation::swiglu ? 2 : 1;
  expect_shapes(rows_of(x) == rows_of(y) && columns_of(x) == inputs_per_output * columns_of(y),
                "activation maps [s,b,2f] (swiglu) or [s,b,f] (gelu) to [s,b,f]");
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

void swiglu_row(const float* gate, const float* value, float* y, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) y[i] = gate[i] * sigmoid(gate[i]) * value[i];
}

void swiglu_backward_row(const float* gate, const float* value, const float* dy, float* dgate, float* dvalue,
                         std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) {
    const float s = sigmoid(gate[i]);
    const float derivative = s * (1.0F + gate[i] * (1.0F - s));
    dgate[i] = dy[i] * value[i] * derivative;
    dvalue[i] = dy[i] * gate[i] * s;
  }
}

}  // namespace

OpCost activation_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "activation");
  check_shapes(x.shape, y.shape, std::get<ActivationAttributes>(any).kind);
  return memory_cost(bytes_of(x, y));
}

void activation_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const Activation kind = std::get<ActivationAttributes>(any).kind;
  const auto [x, y] = unpack<2>(operands, "activation");
  check_shapes(x.shape, y.shape, kind);
  const std::int64_t width = columns_of(y.shape);
  for (std::int64_t row = 0; row < rows_of(y.shape); ++row) {
    float* out = y.f32() + row * width;
    if (kind == Activation::swiglu) {
      const float* gate = x.f32() + 2 * row * width;
      swiglu_row(gate, gate + width, out, width);
    } else {
      const float* in = x.f32() + row * width;
      for (std::int64_t i = 0; i < width; ++i) out[i] = gelu(in[i]);
    }
  }
}

OpCost activation_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, dy, dx] = unpack<3>(operands, "activation_backward");
  check_shapes(x.shape, dy.shape, std::get<ActivationAttributes>(any).kind);
  expect_shapes(dx.shape == x.shape, "activation's input gradient is shaped as its input");
  return memory_cost(bytes_of(x, dy, dx));
}

void activation_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const Activation kind = std::get<ActivationAttributes>(any).kind;
  const auto [x, dy, dx] = unpack<3>(operands, "activation_backward");
  check_shapes(x.shape, dy.shape, kind);
  const std::int64_t width = columns_of(dy.shape);
  for (std::int64_t row = 0; row < rows_of(dy.shape); ++row) {
    const float* gradient = dy.f32() + row * width;
    if (kind == Activation::swiglu) {
      const float* gate = x.f32() + 2 * row * width;
      float* dgate = dx.f32() + 2 * row * width;
      swiglu_backward_row(gate, gate + width, gradient, dgate, dgate + width, width);
    } else {
      const float* in = x.f32() + row * width;
      for (std::int64_t i = 0; i < width; ++i) dx.f32()[row * width + i] = gradient[i] * gelu_derivative(in[i]);
    }
  }
}

}  // namespace tandem
