#include <numbers>

#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// Each moves the bytes of its cost. GELU in tanh is x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), as (1 + tanh(u)) / 2 =
// sigmoid(2u).
namespace tandem {
namespace {

constexpr float cubic = 0.044715F;
constexpr float two_sqrt_2_over_pi = 2 * std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;

TANDEM_DEVICE float sigmoid(float x) { return divide_fast(1.0F, 1.0F + exp_fast(-x)); }

template <typename Element>
struct Swiglu {
  static constexpr int vector = vector_of<Element>;
  const Element* x;
  Element* y;
  std::int64_t width;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    float gate[n], value[n];
    load(x + 2 * row * width + column, gate);
    load(x + (2 * row + 1) * width + column, value);
    for (int i = 0; i < n; ++i) value[i] *= gate[i] * sigmoid(gate[i]);
    store(y + row * width + column, value);
  }
};

template <typename Element>
struct SwigluBackward {
  static constexpr int vector = vector_of<Element>;
  const Element *x, *dy;
  Element* dx;
  std::int64_t width;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    const std::int64_t of_gate = 2 * row * width + column, of_value = of_gate + width;
    float gate[n], value[n], gradient[n];
    load(x + of_gate, gate);
    load(x + of_value, value);
    load(dy + row * width + column, gradient);
    for (int i = 0; i < n; ++i) {
      const float s = sigmoid(gate[i]), silu = gate[i] * s;
      gate[i] = gradient[i] * value[i] * (s * (1.0F + gate[i] * (1.0F - s)));
      value[i] = gradient[i] * silu;
    }
    store(dx + of_gate, gate);
    store(dx + of_value, value);
  }
};

template <typename Element>
struct Gelu {
  static constexpr int vector = vector_of<Element>;
  const Element* x;
  Element* y;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[n];
    load(x + i, values);
    for (float& v : values) v *= sigmoid(two_sqrt_2_over_pi * (v + cubic * v * v * v));
    store(y + i, values);
  }
};

template <typename Element>
struct GeluBackward {
  static constexpr int vector = vector_of<Element>;
  const Element *x, *dy;
  Element* dx;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[n], gradient[n];
    load(x + i, values);
    load(dy + i, gradient);
    for (int j = 0; j < n; ++j) {
      const float v = values[j], s = sigmoid(two_sqrt_2_over_pi * (v + cubic * v * v * v));
      gradient[j] *= s + v * s * (1.0F - s) * two_sqrt_2_over_pi * (1.0F + 3.0F * cubic * v * v);
    }
    store(dx + i, gradient);
  }
};

}  // namespace

void activation_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, y] = checked<2>(OpKind::activation, operands, any);
  expect_types(of_one_type(x, y), "activation's operands are of one type");
  const std::int64_t width = columns_of(y.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const auto* const in = x.template as<const Element>();
    auto* const out = y.template as<Element>();
    const bool aligned = are_aligned({x, y}, vector_of<Element>);
    if (std::get<ActivationAttributes>(any).kind == Activation::gelu)
      launch_elementwise("activation", queue, y.shape.elements(), aligned, Gelu<Element>{in, out});
    else
      launch_by_rows("activation", queue, rows_of(y.shape), width, aligned && width % vector_of<Element> == 0,
                     Swiglu<Element>{in, out, width});
  });
}

void activation_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, dy, dx] = checked<3>(OpKind::activation_backward, operands, any);
  expect_types(of_one_type(x, dy, dx), "activation's operands are of one type");
  const std::int64_t width = columns_of(dy.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    const auto *const in = x.template as<const Element>(), *const gradient = dy.template as<const Element>();
    auto* const out = dx.template as<Element>();
    const bool aligned = are_aligned({x, dy, dx}, vector_of<Element>);
    if (std::get<ActivationAttributes>(any).kind == Activation::gelu)
      launch_elementwise("activation_backward", queue, dy.shape.elements(), aligned, GeluBackward<Element>{in, gradient, out});
    else
      launch_by_rows("activation_backward", queue, rows_of(dy.shape), width, aligned && width % vector_of<Element> == 0,
                     SwigluBackward<Element>{in, gradient, out, width});
  });
}

}  // namespace tandem
