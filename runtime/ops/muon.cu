#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/clip.h"
#include "runtime/ops/muon.h"

// Each moves the bytes of its cost.
namespace tandem {
namespace {

constexpr int elements_at_once = 4;  // of fp32, in which most of them are

template <typename Gradient, typename Element>
struct Momentum {
  static constexpr int vector = elements_at_once;
  const Gradient* grad;
  const float* norm_square;
  Element* u;
  float* momentum;
  float beta, clip_norm;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float g[n], m[n];
    load(grad + i, g);
    load(momentum + i, m);
    const float clip = clip_factor(*norm_square, clip_norm);
    for (int j = 0; j < n; ++j) {
      g[j] *= clip;
      m[j] = beta * m[j] + g[j];
      g[j] += beta * m[j];
    }
    store(momentum + i, m);
    store(u + i, g);
  }
};

template <typename Element>
struct Normalize {
  static constexpr int vector = elements_at_once;
  const Element* u;
  const float* square;
  Element* x;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float values[n];
    load(u + i, values);
    const float norm = sqrtf(*square) + muon_epsilon;
    for (int j = 0; j < n; ++j) values[j] /= norm;
    store(x + i, values);
  }
};

template <typename Element>
struct Polynomial {
  static constexpr int vector = elements_at_once;
  const Element *gram, *square;
  Element* p;
  std::int64_t size;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float first[n], second[n];
    load(gram + i, first);
    load(square + i, second);
    for (int j = 0; j < n; ++j) first[j] = muon_polynomial_of(first[j], second[j], (i + j) % (size + 1) == 0);
    store(p + i, first);
  }
};

template <typename Element, typename Parameter>
struct MuonStep {
  static constexpr int vector = elements_at_once;
  const Element* x;
  Parameter* param;
  float* master;
  MuonAttributes attributes;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float direction[n], weight[n];
    load(x + i, direction);
    load(master + i, weight);
    for (int j = 0; j < n; ++j)
      weight[j] -= attributes.learning_rate * (attributes.scale * direction[j] + attributes.weight_decay * weight[j]);
    store(master + i, weight);
    store(param + i, weight);
  }
};

}  // namespace

void muon_momentum_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MuonAttributes>(any);
  const auto [grad, norm_square, u, momentum] = checked<4>(OpKind::muon_momentum, operands, any);
  expect_types(norm_square.dtype == DType::f32 && of_one_type(norm_square, momentum), "muon's norm and momentum are fp32");
  with_type(grad.dtype, [&]<typename Gradient>(Type<Gradient>) {
    with_type(u.dtype, [&]<typename Element>(Type<Element>) {
      const Momentum<Gradient, Element> body{.grad = grad.template as<const Gradient>(),
                                             .norm_square = norm_square.template as<const float>(),
                                             .u = u.template as<Element>(),
                                             .momentum = momentum.template as<float>(),
                                             .beta = attributes.momentum,
                                             .clip_norm = attributes.clip_norm};
      launch_elementwise("muon_momentum", queue, grad.shape.elements(), are_aligned({grad, u, momentum}, body.vector), body);
    });
  });
}

void muon_normalize_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [u, square, x] = checked<3>(OpKind::muon_normalize, operands, any);
  expect_types(square.dtype == DType::f32 && of_one_type(u, x), "muon's sum of squares is fp32, its matrices of one type");
  with_type(u.dtype, [&, u = u, square = square, x = x]<typename Element>(Type<Element>) {
    const Normalize<Element> body{u.as<const Element>(), square.as<const float>(), x.as<Element>()};
    launch_elementwise("muon_normalize", queue, x.shape.elements(), are_aligned({u, x}, body.vector), body);
  });
}

void muon_polynomial_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [gram, square, p] = checked<3>(OpKind::muon_polynomial, operands, any);
  expect_types(of_one_type(gram, square, p), "muon_polynomial's matrices are of one type");
  with_type(p.dtype, [&, gram = gram, square = square, p = p]<typename Element>(Type<Element>) {
    const Polynomial<Element> body{gram.as<const Element>(), square.as<const Element>(), p.as<Element>(), p.shape[0]};
    launch_elementwise("muon_polynomial", queue, p.shape.elements(), are_aligned({gram, square, p}, body.vector), body);
  });
}

void muon_update_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, param, master] = checked<3>(OpKind::muon_update, operands, any);
  expect_types(master.dtype == DType::f32, "muon's weights are fp32");
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    with_type(param.dtype, [&]<typename Parameter>(Type<Parameter>) {
      const MuonStep<Element, Parameter> body{.x = x.template as<const Element>(),
                                              .param = param.template as<Parameter>(),
                                              .master = master.template as<float>(),
                                              .attributes = std::get<MuonAttributes>(any)};
      launch_elementwise("muon_update", queue, x.shape.elements(), are_aligned({x, param, master}, body.vector), body);
    });
  });
}

}  // namespace tandem
