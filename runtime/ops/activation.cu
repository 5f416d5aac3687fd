#include <limits>
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

/// A function of a number, and its derivative.
struct Curve {
  float value, derivative;
};

/// What the activation applies to its gates, or to all where it has none.
template <Activation kind>
TANDEM_DEVICE Curve curve_at(float x) {
  if constexpr (kind == Activation::quick_geglu) {
    const float s = sigmoid(1.702F * x);
    return {x * s, s * (1.0F + 1.702F * x * (1.0F - s))};
  } else if constexpr (kind == Activation::swiglu || kind == Activation::silu) {
    const float s = sigmoid(x);
    return {x * s, s * (1.0F + x * (1.0F - s))};
  } else if constexpr (kind == Activation::squared_relu) {
    const float positive = fmaxf(x, 0.0F);
    return {positive * positive, 2 * positive};
  } else {
    const float s = sigmoid(two_sqrt_2_over_pi * (x + cubic * x * x * x));
    return {x * s, s + x * s * (1.0F - s) * two_sqrt_2_over_pi * (1.0F + 3.0F * cubic * x * x)};
  }
}

/// An output and its derivatives with respect to the gate, if there is one, and to the value.
struct Activated {
  float y, by_gate, by_value;
};

template <Activation kind>
constexpr bool has_gate = is_gated(kind);  // which code for the device asks in this form alone

/// Of gates and values; a limit of infinity is none.
struct Bounds {
  float limit, offset;

  explicit Bounds(const OpAttributes& any) {
    const auto& attributes = std::get<ActivationAttributes>(any);
    limit = attributes.limit > 0 ? attributes.limit : std::numeric_limits<float>::infinity();
    offset = attributes.offset;
  }
};

template <Activation kind>
TANDEM_DEVICE Activated activated(const Bounds& bounds, float gate, float value) {
  if constexpr (has_gate<kind>) {
    const Curve curve = curve_at<kind>(gate > bounds.limit ? bounds.limit : gate);
    const float below = value > bounds.limit ? bounds.limit : value;
    const float added = (below < -bounds.limit ? -bounds.limit : below) + bounds.offset;
    return {curve.value * added, gate > bounds.limit ? 0.0F : curve.derivative * added,
            fabsf(value) > bounds.limit ? 0.0F : curve.value};
  } else {
    const Curve curve = curve_at<kind>(value);
    return {curve.value, 0, curve.derivative};
  }
}

/// Columns of a row of the inputs. Values lie `width` behind their gates.
template <Activation kind, int n>
struct Inputs {
  static constexpr bool gated = has_gate<kind>;
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
struct PlainActivation {
  static constexpr int vector = vector_of<Element>;
  const Element* x;
  Element* y;
  std::int64_t inputs, width;
  Bounds bounds;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    Inputs<kind, n> in;
    in.load_from(x + row * inputs, column, width);
    float out[n];
    for (int i = 0; i < n; ++i) out[i] = activated<kind>(bounds, in.gate[i], in.value[i]).y;
    store(y + row * width + column, out);
  }
};

template <Activation kind, typename Element>
struct PlainActivationBackward {
  static constexpr int vector = vector_of<Element>;
  const Element *x, *dy;
  Element* dx;
  std::int64_t inputs, width;
  Bounds bounds;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    Inputs<kind, n> in;
    in.load_from(x + row * inputs, column, width);
    float gradient[n];
    load(dy + row * width + column, gradient);
    for (int i = 0; i < n; ++i) {
      const Activated out = activated<kind>(bounds, in.gate[i], in.value[i]);
      in.gate[i] = gradient[i] * out.by_gate;
      in.value[i] = gradient[i] * out.by_value;
    }
    in.store_to(dx + row * inputs, column, width);
  }
};

template <Activation kind, typename Element>
struct WeightedActivation {
  static constexpr int vector = vector_of<Element>;
  const Element* x;
  const float* weights;
  Element* y;
  std::int64_t inputs, width;
  Bounds bounds;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    Inputs<kind, n> in;
    in.load_from(x + row * inputs, column, width);
    float out[n];
    for (int i = 0; i < n; ++i) out[i] = weights[row] * activated<kind>(bounds, in.gate[i], in.value[i]).y;
    store(y + row * width + column, out);
  }
};

constexpr int threads_of_weighted_row = 256;

template <Activation kind, int vector, typename Element>
__global__ void __launch_bounds__(threads_of_weighted_row)
    weighted_activation_backward_kernel(const Element* x, const float* weights, const Element* dy, Element* dx, float* dweights,
                                        std::int64_t inputs, std::int64_t width, Bounds bounds) {
  const std::int64_t row = blockIdx.x;
  const float weight = weights[row];
  float dweight = 0;
  for (std::int64_t column = std::int64_t{threadIdx.x} * vector; column < width; column += threads_of_weighted_row * vector) {
    Inputs<kind, vector> in;
    in.load_from(x + row * inputs, column, width);
    float gradient[vector];
    load(dy + row * width + column, gradient);
    for (int i = 0; i < vector; ++i) {
      const Activated out = activated<kind>(bounds, in.gate[i], in.value[i]);
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
  switch (std::get<ActivationAttributes>(any).kind) {
    case Activation::swiglu:
      return visit(OfKind<Activation::swiglu>{});
    case Activation::gelu:
      return visit(OfKind<Activation::gelu>{});
    case Activation::geglu:
      return visit(OfKind<Activation::geglu>{});
    case Activation::squared_relu:
      return visit(OfKind<Activation::squared_relu>{});
    case Activation::silu:
      return visit(OfKind<Activation::silu>{});
    case Activation::quick_geglu:
      return visit(OfKind<Activation::quick_geglu>{});
  }
}

}  // namespace

void activation_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, y] = checked<2>(OpKind::activation, operands, any);
  expect_types(of_one_type(x, y), "activation's operands are of one type");
  const std::int64_t width = columns_of(y.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    with_activation(any, [&]<Activation kind>(OfKind<kind>) {
      const PlainActivation<kind, Element> body{x.template as<const Element>(), y.template as<Element>(), columns_of(x.shape),
                                                width, Bounds(any)};
      const bool aligned = width % body.vector == 0 && are_aligned({x, y}, body.vector);
      launch_by_rows("activation", queue, rows_of(y.shape), width, aligned, body);
    });
  });
}

void activation_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, dy, dx] = checked<3>(OpKind::activation_backward, operands, any);
  expect_types(of_one_type(x, dy, dx), "activation's operands are of one type");
  const std::int64_t width = columns_of(dy.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    with_activation(any, [&]<Activation kind>(OfKind<kind>) {
      const PlainActivationBackward<kind, Element> body{x.template as<const Element>(),
                                                        dy.template as<const Element>(),
                                                        dx.template as<Element>(),
                                                        columns_of(x.shape),
                                                        width,
                                                        Bounds(any)};
      const bool aligned = width % body.vector == 0 && are_aligned({x, dy, dx}, body.vector);
      launch_by_rows("activation_backward", queue, rows_of(dy.shape), width, aligned, body);
    });
  });
}

void weighted_activation_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, weights, y] = checked<3>(OpKind::weighted_activation, operands, any);
  expect_types(of_one_type(x, y) && weights.dtype == DType::f32, "activation's operands are of one type, weights fp32");
  const std::int64_t width = columns_of(y.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    with_activation(any, [&]<Activation kind>(OfKind<kind>) {
      const WeightedActivation<kind, Element> body{x.template as<const Element>(),
                                                   weights.template as<const float>(),
                                                   y.template as<Element>(),
                                                   columns_of(x.shape),
                                                   width,
                                                   Bounds(any)};
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
             dx.template as<Element>(), dweights.template as<float>(), columns_of(x.shape), width, Bounds(any));
    });
  });
}

}  // namespace tandem
