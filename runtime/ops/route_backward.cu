#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/route_device.h"

// The choices of each group and expert are counted first, for the balance loss, unless those of whole sequences are given; then a
// warp per token reads its logits, from the L1 cache when more than once. Beside the bytes of the cost: 4 per choice and 8 per
// group and expert.
namespace tandem {
namespace {

constexpr int threads_of_route = 256;
constexpr int warps_of_route = threads_of_route / lanes_of_warp;

struct ClearCounts {
  static constexpr int vector = 1;
  int* counts;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    counts[i] = 0;
  }
};

/// counts [groups][experts]
struct CountChoices {
  static constexpr int vector = 1;
  const std::int32_t* slots;
  int* counts;
  TokenRouting routing;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t choice) const {
    const int group = routing.group_of(choice / routing.top_k);
    atomicAdd(&counts[group * routing.experts + routing.expert_of(slots[choice])], 1);
  }
};

/// Choices that a token's balance loss counts.
struct Counts {
  const int* of_groups;       ///< [groups][experts]
  const float* of_sequences;  ///< [sequences][experts], or null
  int sequences;

  TANDEM_DEVICE float of(const TokenRouting& routing, std::int64_t token, int expert) const {
    if (of_sequences != nullptr) return of_sequences[token % sequences * routing.experts + expert];
    return static_cast<float>(of_groups[routing.group_of(token) * routing.experts + expert]);
  }
};

/// A block per expert and sequence, whose choices it reads from the L2 cache.
__global__ void count_by_sequence_kernel(const std::int32_t* slots, float* counts, TokenRouting routing) {
  const int expert = static_cast<int>(blockIdx.x), k = routing.top_k;
  const std::int64_t sequence = blockIdx.y, sequences = gridDim.y;
  float mine = 0;
  for (std::int64_t choice = threadIdx.x; choice < routing.tokens / sequences * k; choice += threads_of_route) {
    const std::int64_t token = choice / k * sequences + sequence;
    mine += routing.expert_of(slots[token * k + choice % k]) == expert ? 1.0F : 0.0F;
  }
  const float sum = block_sum(mine);
  if (threadIdx.x == 0) counts[sequence * routing.experts + expert] = sum;
}

/// With p the softmax over all experts and q the gates, the softmax over the chosen ones, and d the gradients by p and q:
/// dlogits = p (dp - p . dp), for the chosen + q (dq - q . dq). A single gate is its expert's p, and so are those of pre_softmax
/// and of experts that choose.
__global__ void route_backward_kernel(const float* logits, const std::int32_t* slots, const float* dgates, Counts counts,
                                      float* dlogits, TokenRouting routing, float slope_of_choice) {
  const std::int64_t token = std::int64_t{blockIdx.x} * warps_of_route + threadIdx.x / lanes_of_warp;
  if (token >= routing.tokens) return;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp, experts = routing.experts, k = routing.top_k;
  const float* const of_token = logits + token * experts;
  float* const gradient = dlogits + token * experts;
  const bool alone = k == 1 || routing.pre_softmax;
  const auto expert = [&](int j) { return routing.expert_of(slots[token * k + j]); };
  const auto dgate = [&](int j) { return dgates[token * k + j] * routing.scaling; };
  const auto dprobability = [&](int e) {
    if (routing.expert_choice) return slots[token * k + e] < 0 ? 0.0F : dgate(e);
    float sum = slope_of_choice * counts.of(routing, token, e);
    for (int j = 0; alone && j < k; ++j) sum += expert(j) == e ? dgate(j) : 0.0F;
    return sum;
  };

  float largest = -INFINITY, sum = 0, mean = 0;
  for (int e = lane; e < experts; e += lanes_of_warp) largest = fmaxf(largest, of_token[e]);
  largest = warp_max(largest);
  for (int e = lane; e < experts; e += lanes_of_warp) {
    const float weight = expf(of_token[e] - largest);
    sum += weight;
    mean += weight * dprobability(e);
  }
  sum = warp_sum(sum);
  mean = warp_sum(mean) / sum;
  for (int e = lane; e < experts; e += lanes_of_warp) gradient[e] = expf(of_token[e] - largest) / sum * (dprobability(e) - mean);
  if (alone || routing.expert_choice) return;

  float largest_chosen = -INFINITY, gate_sum = 0, gate_mean = 0;
  for (int j = lane; j < k; j += lanes_of_warp) largest_chosen = fmaxf(largest_chosen, of_token[expert(j)]);
  largest_chosen = warp_max(largest_chosen);
  for (int j = lane; j < k; j += lanes_of_warp) {
    const float weight = expf(of_token[expert(j)] - largest_chosen);
    gate_sum += weight;
    gate_mean += weight * dgate(j);
  }
  gate_sum = warp_sum(gate_sum);
  gate_mean = warp_sum(gate_mean) / gate_sum;
  __syncwarp();  // what other lanes wrote above is added to
  for (int j = lane; j < k; j += lanes_of_warp)
    gradient[expert(j)] += expf(of_token[expert(j)] - largest_chosen) / gate_sum * (dgate(j) - gate_mean);
}

/// With s the scores, p = s / (their sum over all experts) and q = s / (that over the chosen ones), for one choice s, and d the
/// gradients by p and q: ds = (dp - p . dp) / (sum over all), for the chosen + (dq - q . dq) / (sum over the chosen), for one
/// choice + dq; dlogits = s' ds, for sigmoids s (1 - s) ds.
__global__ void score_backward_kernel(const float* logits, const std::int32_t* slots, const float* dgates, Counts counts,
                                      float* dlogits, TokenRouting routing, float slope_of_choice) {
  const std::int64_t token = std::int64_t{blockIdx.x} * warps_of_route + threadIdx.x / lanes_of_warp;
  if (token >= routing.tokens) return;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp, experts = routing.experts, k = routing.top_k;
  const float* const of_token = logits + token * experts;
  float* const gradient = dlogits + token * experts;
  const auto expert = [&](int j) { return routing.expert_of(slots[token * k + j]); };
  const auto dgate = [&](int j) { return dgates[token * k + j] * routing.scaling; };
  const auto dprobability = [&](int e) { return slope_of_choice * counts.of(routing, token, e); };

  float sum = 0, mean = 0, chosen_sum = 0, gate_mean = 0;
  for (int e = lane; e < experts; e += lanes_of_warp) {
    const float s = score_of_logit(routing.score, of_token[e]);
    sum += s;
    mean += s * dprobability(e);
  }
  for (int j = lane; j < k; j += lanes_of_warp) {
    const float s = score_of_logit(routing.score, of_token[expert(j)]);
    chosen_sum += s;
    gate_mean += s * dgate(j);
  }
  sum = warp_sum(sum) + least_sum_of_scores;
  mean = warp_sum(mean) / sum;
  chosen_sum = k == 1 ? 1 : warp_sum(chosen_sum) + least_sum_of_scores;
  gate_mean = k == 1 ? 0 : warp_sum(gate_mean) / chosen_sum;
  const auto slope = [&](int e) { return slope_of_score(routing.score, of_token[e]); };
  for (int e = lane; e < experts; e += lanes_of_warp) gradient[e] = slope(e) * (dprobability(e) - mean) / sum;
  __syncwarp();  // what other lanes wrote above is added to
  for (int j = lane; j < k; j += lanes_of_warp) gradient[expert(j)] += slope(expert(j)) * (dgate(j) - gate_mean) / chosen_sum;
}

}  // namespace

void count_by_sequence_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [slots, counts] = checked<2>(OpKind::count_by_sequence, operands, any);
  expect_types(slots.dtype == DType::i32 && counts.dtype == DType::f32, "choices are counted in fp32");
  const TokenRouting routing(attributes, rows_of(slots.shape));
  const dim3 blocks(static_cast<unsigned>(routing.experts), static_cast<unsigned>(attributes.sequences));
  launch("count_by_sequence", queue, {blocks, dim3(threads_of_route)}, count_by_sequence_kernel, slots.as<const std::int32_t>(),
         counts.as<float>(), routing);
}

void route_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const bool by_sequence = attributes.sequences > 0;
  check_shapes(OpKind::route_backward, operands, any);
  const DeviceTensor &logits = operands[0], &slots = operands[1], &dgates = operands[by_sequence ? 3 : 2],
                     &dlogits = operands[by_sequence ? 4 : 3];
  expect_types(of_one_type(logits, dgates, dlogits) && logits.dtype == DType::f32 && slots.dtype == DType::i32,
               "route computes in fp32");
  const std::int64_t tokens = rows_of(logits.shape);
  const TokenRouting routing(attributes, tokens);
  auto* const of_groups = static_cast<int*>(queue.scratch);
  const auto* const of_slots = slots.as<const std::int32_t>();
  const std::int64_t counted_tokens = by_sequence ? attributes.sequence : tokens / routing.groups;
  const auto slope_of_choice = static_cast<float>(attributes.balance * static_cast<double>(routing.experts) /
                                                  static_cast<double>(counted_tokens * routing.top_k));
  if (!by_sequence) {
    launch_elementwise("route_backward", queue, std::int64_t{routing.groups} * routing.experts, true, ClearCounts{of_groups});
    launch_elementwise("route_backward", queue, tokens * routing.top_k, true, CountChoices{of_slots, of_groups, routing});
  }
  const Counts counts{of_groups, by_sequence ? operands[2].as<const float>() : nullptr, attributes.sequences};
  launch("route_backward", queue, {dim3(blocks_along_x(divide_up(tokens, warps_of_route))), dim3(threads_of_route)},
         routing.score != ScoreFunction::softmax ? score_backward_kernel : route_backward_kernel, logits.as<const float>(),
         of_slots, dgates.as<const float>(), counts, dlogits.as<float>(), routing, slope_of_choice);
}

std::size_t route_backward_scratch(std::span<const OperandType>, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  return static_cast<std::size_t>(attributes.groups) * attributes.slots.size() * sizeof(int);
}

}  // namespace tandem
