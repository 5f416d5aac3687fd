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

/// An output and its derivatives with respect to the gate (swiglu alone) and to the value (gelu: the input).
struct Activated {
  float y, by_gate, by_value;
};

template <Activation kind>
TANDEM_DEVICE Activated activated(float gate, float value) {
  if constexpr (kind == Activation::swiglu) {
    const float s = sigmoid(gate), silu = gate * s;
    return {silu * value, value * (s * (1.0F + gate * (1.0F - s))), silu};
  } else {
    const float s = sigmoid(two_sqrt_2_over_pi * (value + cubic * value * value * value));
    return {value * s, 0, s + value * s * (1.0F - s) * two_sqrt_2_over_pi * (1.0F + 3.0F * cubic * value * value)};
  }
}

/// Columns of a row of the inputs. swiglu's values lie `width` behind its gates.
template <Activation kind, int n>
struct Inputs {
  static constexpr bool gated = kind == Activation::swiglu;
  float gate[n] = {}, value[n];

  template <typename Element>
  TANDEM_DEVICE void load_from(const Element* row, std::int64_t column, std::int64_t width) {
    if constexpr (gated) load(row + column, gate);
    load(row + column + (gated ? width : 0), value);
  }
  template <typename Element>
  TANDEM_DEVICE void store_to(Element* row, std::int64_t column, std::int64_t width) const {
    if constexpr (gated) store(row + column, gate);
    store(row + column + (gated ? width : 0), value);
  }
};

template <Activation kind, typename Element>
struct WeightedActivation {
  static constexpr int vector = vector_of<Element>;
  const Element* x;
  const float* weights;
  Element* y;
  std::int64_t inputs, width;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    Inputs<kind, n> in;
    in.load_from(x + row * inputs, column, width);
    float out[n];
    for (int i = 0; i < n; ++i) out[i] = weights[row] * activated<kind>(in.gate[i], in.value[i]).y;
    store(y + row * width + column, out);
  }
};

constexpr int threads_of_weighted_row = 256;

template <Activation kind, int vector, typename Element>
__global__ void __launch_bounds__(threads_of_weighted_row)
    weighted_activation_backward_kernel(const Element* x, const float* weights, const Element* dy, Element* dx, float* dweights,
                                        std::int64_t inputs, std::int64_t width) {
  const std::int64_t row = blockIdx.x;
  const float weight = weights[row];
  float dweight = 0;
  for (std::int64_t column = std::int64_t{threadIdx.x} * vector; column < width; column += threads_of_weighted_row * vector) {
    Inputs<kind, vector> in;
    in.load_from(x + row * inputs, column, width);
    float gradient[vector];
    load(dy + row * width + column, gradient);
    for (int i = 0; i < vector; ++i) {
      const Activated out = activated<kind>(in.gate[i], in.value[i]);
      dweight += gradient[i] * out.y;
      in.gate[i] = weight * gradient[i] * out.by_gate;
      in.value[i] = weight * gradient[i] * out.by_value;
    }
    in.store_to(dx + row * inputs, column, width);
  }
  dweight = block_sum(dweight);
  if (threadIdx.x == 0) dweights[row] = dweight;
}

template <Activation activation>
struct OfKind {};

template <typename Visit>
void with_activation(const OpAttributes& any, Visit visit) {
  if (std::get<ActivationAttributes>(any).kind == Activation::gelu)
    visit(OfKind<Activation::gelu>{});
  else
    visit(OfKind<Activation::swiglu>{});
}

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

void weighted_activation_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, weights, y] = checked<3>(OpKind::weighted_activation, operands, any);
  expect_types(of_one_type(x, y) && weights.dtype == DType::f32, "activation's operands are of one type, weights fp32");
  const std::int64_t width = columns_of(y.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    with_activation(any, [&]<Activation kind>(OfKind<kind>) {
      const WeightedActivation<kind, Element> body{x.template as<const Element>(), weights.template as<const float>(),
                                                   y.template as<Element>(), columns_of(x.shape), width};
      const bool aligned = width % body.vector == 0 && are_aligned({x, y}, body.vector);
      launch_by_rows("weighted_activation", queue, rows_of(y.shape), width, aligned, body);
    });
  });
}

void weighted_activation_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, weights, dy, dx, dweights] = checked<5>(OpKind::weighted_activation_backward, operands, any);
  expect_types(of_one_type(x, dy, dx), "activation's operands are of one type");
  expect_types(weights.dtype == DType::f32 && dweights.dtype == DType::f32, "weights are fp32");
  const std::int64_t width = columns_of(dy.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    with_activation(any, [&]<Activation kind>(OfKind<kind>) {
      constexpr int vector = vector_of<Element>;
      const bool aligned = width % vector == 0 && are_aligned({x, dy, dx}, vector);
      launch("weighted_activation_backward", queue, {dim3(blocks_along_x(rows_of(dy.shape))), dim3(threads_of_weighted_row)},
             aligned ? weighted_activation_backward_kernel<kind, vector, Element>
                     : weighted_activation_backward_kernel<kind, 1, Element>,
             x.template as<const Element>(), weights.template as<const float>(), dy.template as<const Element>(),
             dx.template as<Element>(), dweights.template as<float>(), columns_of(x.shape), width);
    });
  });
}

}  // namespace tandem
