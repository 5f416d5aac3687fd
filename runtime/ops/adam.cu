#include <cmath>

#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/clip.h"

// Moves the bytes of its cost.
namespace tandem {
namespace {

template <typename Gradient, typename Parameter, typename Moment>
struct Adam {
  static constexpr int vector = 4;  // of fp32, in which most of it is
  const Gradient* grad;
  const float* norm_square;
  Parameter* param;
  float* master;
  Moment *m, *v;
  AdamAttributes attributes;
  float correction1, correction2;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float g[n], weight[n], first[n], second[n];
    load(grad + i, g);
    load(master + i, weight);
    load(m + i, first);
    load(v + i, second);
    const float clip = clip_factor(*norm_square, attributes.clip_norm), beta1 = attributes.beta1, beta2 = attributes.beta2;
    for (int j = 0; j < n; ++j) {
      g[j] *= clip;
      first[j] = beta1 * first[j] + (1 - beta1) * g[j];
      second[j] = beta2 * second[j] + (1 - beta2) * g[j] * g[j];
      const float step = correction1 * first[j] / (sqrtf(correction2 * second[j]) + attributes.epsilon);
      weight[j] -= attributes.learning_rate * (step + attributes.weight_decay * weight[j]);
    }
    store(m + i, first);
    store(v + i, second);
    store(master + i, weight);
    store(param + i, weight);
  }
};

/// In fp32 or bf16, as moments are kept.
template <typename Visit>
void with_moment(DType type, Visit visit) {
  expect_types(type == DType::f32 || type == DType::bf16, "adam's moments are fp32 or bf16");
  if (type == DType::bf16)
    visit(Type<Bf16>{});
  else
    visit(Type<float>{});
}

}  // namespace

void adam_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdamAttributes>(any);
  const auto [grad, norm_square, param, master, m, v] = checked<6>(OpKind::adam, operands, any);
  expect_types(norm_square.dtype == DType::f32 && of_one_type(norm_square, master), "adam's norm and master weights are fp32");
  expect_types(of_one_type(m, v), "adam's moments are of one type");
  const auto correction = [&](float beta) { return static_cast<float>(1 / (1 - std::pow(double{beta}, attributes.step))); };
  with_type(grad.dtype, [&]<typename Gradient>(Type<Gradient>) {
    with_type(param.dtype, [&]<typename Parameter>(Type<Parameter>) {
      with_moment(m.dtype, [&]<typename Moment>(Type<Moment>) {
        const Adam<Gradient, Parameter, Moment> body{.grad = grad.template as<const Gradient>(),
                                                     .norm_square = norm_square.template as<const float>(),
                                                     .param = param.template as<Parameter>(),
                                                     .master = master.template as<float>(),
                                                     .m = m.template as<Moment>(),
                                                     .v = v.template as<Moment>(),
                                                     .attributes = attributes,
                                                     .correction1 = correction(attributes.beta1),
                                                     .correction2 = correction(attributes.beta2)};
        launch_elementwise("adam", queue, grad.shape.elements(), are_aligned({grad, param, master, m, v}, body.vector), body);
      });
    });
  });
}

}  // namespace tandem
