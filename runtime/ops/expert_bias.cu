#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/route_device.h"

// A block per expert counts its choices, reading all from the L2 cache; a block per layer takes the mean of the counts and moves
// the biases. Counts are whole numbers, which fp32 adds up exactly to 2^24.
namespace tandem {
namespace {

constexpr int threads_of_biases = 256;

__global__ void count_choices_kernel(const std::int32_t* slots, std::int64_t choices, float* counts, TokenRouting routing) {
  const int expert = static_cast<int>(blockIdx.x);
  float mine = 0;
  for (std::int64_t choice = threadIdx.x; choice < choices; choice += threads_of_biases)
    mine += routing.expert_of(slots[choice]) == expert ? 1.0F : 0.0F;
  const float sum = block_sum(mine);
  if (threadIdx.x == 0) counts[expert] += sum;
}

__global__ void update_expert_bias_kernel(const float* counts, float* bias, int experts, float rate) {
  const float* const of_layer = counts + std::int64_t{blockIdx.x} * experts;
  float sum = 0;
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += threads_of_biases) sum += of_layer[e];
  const float mean = block_sum(sum) / static_cast<float>(experts);
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += threads_of_biases) {
    const float missing = mean - of_layer[e];
    bias[std::int64_t{blockIdx.x} * experts + e] += missing > 0 ? rate : missing < 0 ? -rate : 0.0F;
  }
}

}  // namespace

void count_choices_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [slots, counts] = checked<2>(OpKind::count_choices, operands, any);
  expect_types(slots.dtype == DType::i32 && counts.dtype == DType::f32, "choices are counted in fp32");
  const TokenRouting routing(attributes, rows_of(slots.shape));
  launch("count_choices", queue, {dim3(static_cast<unsigned>(routing.experts)), dim3(threads_of_biases)}, count_choices_kernel,
         slots.as<const std::int32_t>(), slots.shape.elements(), counts.as<float>(), routing);
}

void update_expert_bias_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [counts, bias] = checked<2>(OpKind::update_expert_bias, operands, any);
  expect_types(of_one_type(counts, bias) && bias.dtype == DType::f32, "biases of experts are fp32");
  const auto experts = static_cast<int>(columns_of(counts.shape));
  const dim3 layers(static_cast<unsigned>(rows_of(counts.shape)));
  launch("update_expert_bias", queue, {layers, dim3(threads_of_biases)}, update_expert_bias_kernel, counts.as<const float>(),
         bias.as<float>(), experts, std::get<ScaleAttributes>(any).factor);
}

}  // namespace tandem
