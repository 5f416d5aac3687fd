#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/cuda/module/reduce.h"

// Each moves the bytes of its cost: a block reads a token's logits once. The loss is summed in two passes.
namespace tandem {
namespace {

constexpr int threads_of_row = 512;

/// Calls visit(logit) for the block's row of logits, each by one thread.
template <int vector, typename Element, typename Visit>
TANDEM_DEVICE void each_logit(const Element* logits, std::int64_t vocabulary, Visit visit) {
  const Element* const row = logits + blockIdx.x * vocabulary;
  const std::int64_t stride = std::int64_t{threads_of_row} * vector;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{threadIdx.x} * vector; i < vocabulary; i += stride) {
    float values[vector];
    load(row + i, values);
    for (int j = 0; j < vector; ++j) visit(j, values[j]);
  }
}

template <int vector, typename Element>
__global__ void __launch_bounds__(threads_of_row) row_max_kernel(const Element* logits, std::int64_t vocabulary, float* max) {
  float largest = -INFINITY;
  each_logit<vector>(logits, vocabulary, [&](int, float logit) { largest = fmaxf(largest, logit); });
  largest = block_max(largest);
  if (threadIdx.x == 0) max[blockIdx.x] = largest;
}

template <int vector, typename Element>
__global__ void __launch_bounds__(threads_of_row)
    row_sum_kernel(const Element* logits, std::int64_t vocabulary, const float* max, float* sum) {
  const float largest = max[blockIdx.x];
  float lanes[vector] = {}, total = 0;
  each_logit<vector>(logits, vocabulary, [&](int lane, float logit) { lanes[lane] += exp_fast(logit - largest); });
  for (int lane = 0; lane < vector; ++lane) total += lanes[lane];
  total = block_sum(total);
  if (threadIdx.x == 0) sum[blockIdx.x] = total;
}

/// The target's place in this rank's part of the vocabulary; -1 if another rank holds it.
TANDEM_DEVICE std::int64_t local_target(std::int32_t target, std::int64_t vocabulary, std::int64_t vocab_start) {
  const std::int64_t local = target - vocab_start;
  return local >= 0 && local < vocabulary ? local : -1;
}

template <typename Element>
struct TargetLogit {
  static constexpr int vector = 1;  // each lies elsewhere
  const Element* logits;
  const std::int32_t* targets;
  float* target;
  std::int64_t vocabulary, vocab_start;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t local = local_target(targets[i], vocabulary, vocab_start);
    target[i] = local < 0 ? 0.0F : to_float(logits[i * vocabulary + local]);
  }
};

struct TokenLoss {
  using Join = Sum;
  static constexpr int vector = 4;
  const float *max, *sum, *target;

  template <int n>
  TANDEM_DEVICE void add(std::int64_t i, float (&lanes)[n]) const {
    float largest[n], total[n], of_target[n];
    load(max + i, largest);
    load(sum + i, total);
    load(target + i, of_target);
    for (int j = 0; j < n; ++j) lanes[j] += logf(total[j]) + (largest[j] - of_target[j]);
  }
};

template <typename Element>
struct LogitGradient {
  static constexpr int vector = vector_of<Element>;
  const Element* logits;
  const std::int32_t* targets;
  const float *max, *sum;
  Element* dlogits;
  std::int64_t vocabulary, vocab_start;
  float scale;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    const float largest = max[row], factor = scale / sum[row];
    const std::int64_t from_target = column - local_target(targets[row], vocabulary, vocab_start);
    float values[n];
    load(logits + row * vocabulary + column, values);
    for (int j = 0; j < n; ++j) values[j] = factor * exp_fast(values[j] - largest) - (from_target + j == 0 ? scale : 0.0F);
    store(dlogits + row * vocabulary + column, values);
  }
};

void expect_fp32(std::initializer_list<DeviceTensor> per_token) {
  for (const DeviceTensor& tensor : per_token) expect_types(tensor.dtype == DType::f32, "cross entropy's sums are fp32");
}

bool rows_are_aligned(const DeviceTensor& logits, int vector) {
  return columns_of(logits.shape) % vector == 0 && is_aligned(logits, vector);
}

}  // namespace

void cross_entropy_max_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [logits, max] = checked<2>(OpKind::cross_entropy_max, operands, attributes);
  expect_fp32({max});
  with_type(logits.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    launch("cross_entropy_max", queue, {dim3(blocks_along_x(rows_of(logits.shape))), dim3(threads_of_row)},
           rows_are_aligned(logits, vector) ? row_max_kernel<vector, Element> : row_max_kernel<1, Element>,
           logits.template as<const Element>(), columns_of(logits.shape), max.template as<float>());
  });
}

void cross_entropy_sum_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [logits, max, sum] = checked<3>(OpKind::cross_entropy_sum, operands, attributes);
  expect_fp32({max, sum});
  with_type(logits.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    launch("cross_entropy_sum", queue, {dim3(blocks_along_x(rows_of(logits.shape))), dim3(threads_of_row)},
           rows_are_aligned(logits, vector) ? row_sum_kernel<vector, Element> : row_sum_kernel<1, Element>,
           logits.template as<const Element>(), columns_of(logits.shape), max.template as<const float>(),
           sum.template as<float>());
  });
}

void cross_entropy_target_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [logits, targets, target] = checked<3>(OpKind::cross_entropy_target, operands, attributes);
  expect_fp32({target});
  with_type(logits.dtype, [&]<typename Element>(Type<Element>) {
    const TargetLogit<Element> body{logits.template as<const Element>(), targets.template as<const std::int32_t>(),
                                    target.template as<float>(), columns_of(logits.shape),
                                    std::get<CrossEntropyAttributes>(attributes).vocab_start};
    launch_elementwise("cross_entropy_target", queue, rows_of(logits.shape), true, body);
  });
}

void cross_entropy_loss_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [max, sum, target, loss] = checked<4>(OpKind::cross_entropy_loss, operands, attributes);
  expect_fp32({max, sum, target, loss});
  const TokenLoss body{max.as<const float>(), sum.as<const float>(), target.as<const float>()};
  launch_sum<false>("cross_entropy_loss", queue, max.shape.elements(), are_aligned({max, sum, target}, body.vector), body,
                    std::get<CrossEntropyAttributes>(attributes).scale, loss.as<float>());
}

std::size_t cross_entropy_loss_scratch(std::span<const OperandType>, const OpAttributes&) { return reduction_scratch_bytes; }

void cross_entropy_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<CrossEntropyAttributes>(any);
  const auto [logits, targets, max, sum, dlogits] = checked<5>(OpKind::cross_entropy_backward, operands, any);
  expect_types(of_one_type(logits, dlogits), "cross entropy's gradient has the type of the logits");
  expect_fp32({max, sum});
  with_type(logits.dtype, [&]<typename Element>(Type<Element>) {
    const LogitGradient<Element> body{.logits = logits.template as<const Element>(),
                                      .targets = targets.template as<const std::int32_t>(),
                                      .max = max.template as<const float>(),
                                      .sum = sum.template as<const float>(),
                                      .dlogits = dlogits.template as<Element>(),
                                      .vocabulary = columns_of(logits.shape),
                                      .vocab_start = attributes.vocab_start,
                                      .scale = attributes.scale};
    launch_by_rows("cross_entropy_backward", queue, rows_of(logits.shape), columns_of(logits.shape),
                   rows_are_aligned(logits, body.vector) && is_aligned(dlogits, body.vector), body);
  });
}

}  // namespace tandem
