#include "runtime/cuda/module/convert.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/cuda/module/reduce.h"

// Each moves the bytes of its cost.
namespace tandem {
namespace {

template <typename Element>
struct Add {
  static constexpr int vector = vector_of<Element>;
  const Element *a, *b;
  Element* c;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float first[n], second[n];
    load(a + i, first);
    load(b + i, second);
    for (int j = 0; j < n; ++j) first[j] += second[j];
    store(c + i, first);
  }
};

template <typename Element>
struct WeightedSum {
  static constexpr int vector = vector_of<Element>;
  const Element *a, *b;
  Element* c;
  WeightedSumAttributes factors;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float first[n], second[n];
    load(a + i, first);
    load(b + i, second);
    for (int j = 0; j < n; ++j) first[j] = factors.first * first[j] + factors.second * second[j];
    store(c + i, first);
  }
};

template <typename Element>
struct Fill {
  static constexpr int vector = vector_of<Element>;
  Element* x;
  float value;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[n];
    for (int j = 0; j < n; ++j) values[j] = value;
    store(x + i, values);
  }
};

template <typename Element>
struct Softcap {
  static constexpr int vector = vector_of<Element>;
  Element* x;
  float cap;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[n];
    load(x + i, values);
    for (int j = 0; j < n; ++j) values[j] = cap * tanhf(values[j] / cap);
    store(x + i, values);
  }
};

template <typename Element>
struct SoftcapBackward {
  static constexpr int vector = vector_of<Element>;
  const Element* y;
  Element* dy;
  float cap;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float capped[n], gradients[n];
    load(y + i, capped);
    load(dy + i, gradients);
    for (int j = 0; j < n; ++j) gradients[j] *= 1 - capped[j] / cap * (capped[j] / cap);
    store(dy + i, gradients);
  }
};

template <typename Element>
struct Squares {
  using Join = Sum;
  static constexpr int vector = vector_of<Element>;
  const Element* x;

  template <int n>
  TANDEM_DEVICE void add(std::int64_t i, float (&lanes)[n]) const {
    float values[n];
    load(x + i, values);
    for (int j = 0; j < n; ++j) lanes[j] += values[j] * values[j];
  }
};

}  // namespace

void add_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [a, b, c] = checked<3>(OpKind::add, operands, attributes);
  expect_types(of_one_type(a, b, c), "add's operands are of one type");
  with_type(a.dtype, [&, a = a, b = b, c = c]<typename Element>(Type<Element>) {
    const Add<Element> body{a.as<const Element>(), b.as<const Element>(), c.as<Element>()};
    launch_elementwise("add", queue, c.shape.elements(), are_aligned({a, b, c}, body.vector), body);
  });
}

void weighted_sum_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [a, b, c] = checked<3>(OpKind::weighted_sum, operands, attributes);
  expect_types(of_one_type(a, b, c), "weighted_sum's operands are of one type");
  with_type(a.dtype, [&, a = a, b = b, c = c]<typename Element>(Type<Element>) {
    const WeightedSum<Element> body{a.as<const Element>(), b.as<const Element>(), c.as<Element>(),
                                    std::get<WeightedSumAttributes>(attributes)};
    launch_elementwise("weighted_sum", queue, c.shape.elements(), are_aligned({a, b, c}, body.vector), body);
  });
}

void fill_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [x] = checked<1>(OpKind::fill, operands, attributes);
  with_type(x.dtype, [&, x = x]<typename Element>(Type<Element>) {
    const Fill<Element> body{x.as<Element>(), std::get<ScaleAttributes>(attributes).factor};
    launch_elementwise("fill", queue, x.shape.elements(), is_aligned(x, body.vector), body);
  });
}

void softcap_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [x] = checked<1>(OpKind::softcap, operands, attributes);
  with_type(x.dtype, [&, x = x]<typename Element>(Type<Element>) {
    const Softcap<Element> body{x.as<Element>(), std::get<ScaleAttributes>(attributes).factor};
    launch_elementwise("softcap", queue, x.shape.elements(), is_aligned(x, body.vector), body);
  });
}

void softcap_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [y, dy] = checked<2>(OpKind::softcap_backward, operands, attributes);
  expect_types(of_one_type(y, dy), "softcap_backward's operands are of one type");
  with_type(y.dtype, [&, y = y, dy = dy]<typename Element>(Type<Element>) {
    const SoftcapBackward<Element> body{y.as<const Element>(), dy.as<Element>(), std::get<ScaleAttributes>(attributes).factor};
    launch_elementwise("softcap_backward", queue, dy.shape.elements(), are_aligned({y, dy}, body.vector), body);
  });
}

void scale_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [x, y] = checked<2>(OpKind::scale, operands, attributes);
  convert("scale", queue, std::get<ScaleAttributes>(attributes).factor, x, y);
}

void square_sum_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [x, out] = checked<2>(OpKind::square_sum, operands, attributes);
  expect_types(out.dtype == DType::f32, "a sum of squares is fp32");
  with_type(x.dtype, [&, x = x, out = out]<typename Element>(Type<Element>) {
    const Squares<Element> body{x.as<const Element>()};
    launch_sum<true>("square_sum", queue, x.shape.elements(), is_aligned(x, body.vector), body,
                     std::get<ScaleAttributes>(attributes).factor, out.as<float>());
  });
}

std::size_t square_sum_scratch(std::span<const OperandType>, const OpAttributes&) { return reduction_scratch_bytes; }

std::size_t scale_scratch(std::span<const OperandType> operands, const OpAttributes&) {
  return convert_scratch_bytes(operands.back().dtype);
}

}  // namespace tandem
