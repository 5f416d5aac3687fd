#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/route_device.h"

// A warp chooses a token's experts, then one block per expert and group deals its slots, reading all choices of the group from
// the L2 cache. Beside the bytes of the cost: 4 per token and 8 per choice; where tokens do not choose by the logits themselves,
// 12 per token and expert.
namespace tandem {
namespace {

constexpr int threads_of_route = 256;
constexpr int warps_of_route = threads_of_route / lanes_of_warp;

struct Candidate {
  float value;
  int index;

  /// Higher values come first, and of equal ones the lower index.
  TANDEM_DEVICE bool before(const Candidate& other) const {
    return value > other.value || (value == other.value && index < other.index);
  }
};
constexpr Candidate before_all{INFINITY, -1};
constexpr Candidate after_all{-INFINITY, 0x7FFFFFFF};

/// The first of what the lanes of a warp offer, to all of them.
TANDEM_DEVICE Candidate first_of_warp(Candidate mine) {
  for (int lanes = lanes_of_warp / 2; lanes > 0; lanes /= 2) {
    const Candidate other{__shfl_xor_sync(every_lane, mine.value, lanes), __shfl_xor_sync(every_lane, mine.index, lanes)};
    if (other.before(mine)) mine = other;
  }
  return mine;
}

/// The next after `previous` among the values with numbers [first, last) that `allowed` lets pass.
template <typename Allowed>
TANDEM_DEVICE Candidate next_best(const float* values, int first, int last, Candidate previous, Allowed allowed) {
  Candidate best = after_all;
  for (int i = first + static_cast<int>(threadIdx.x) % lanes_of_warp; i < last; i += lanes_of_warp) {
    const Candidate candidate{isnan(values[i]) ? -INFINITY : values[i], i};
    if (allowed(i) && previous.before(candidate) && candidate.before(best)) best = candidate;
  }
  return first_of_warp(best);
}

constexpr int most_nodes = 64;

/// The nodes, as bits, among whose experts a token chooses. `sums` is the warp's alone.
TANDEM_DEVICE std::uint64_t best_nodes(const float* values, const TokenRouting& routing, float* sums) {
  const int size = routing.experts_of_node(), counted = smaller(size, routing.best_of_node);
  const auto every = [](int) { return true; };
  for (int node = 0; node < routing.nodes; ++node) {
    float sum = 0;
    Candidate best = before_all;
    for (int i = 0; i < counted; ++i) {
      best = next_best(values, node * size, (node + 1) * size, best, every);
      sum += best.value;
    }
    if (threadIdx.x % lanes_of_warp == 0) sums[node] = sum;
  }
  __syncwarp();
  std::uint64_t nodes = 0;
  Candidate best = before_all;
  for (int i = 0; i < routing.node_limit; ++i) {
    best = next_best(sums, 0, routing.nodes, best, every);
    nodes |= std::uint64_t{1} << best.index;
  }
  return nodes;
}

/// A warp per token: scores [T,E]. `bias`: by expert, or null.
__global__ void scores_kernel(const float* logits, const float* bias, float* scores, TokenRouting routing) {
  const std::int64_t token = std::int64_t{blockIdx.x} * warps_of_route + threadIdx.x / lanes_of_warp;
  if (token >= routing.tokens) return;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const float* const of_token = logits + token * routing.experts;
  float largest = -INFINITY, sum = 0;
  if (routing.pre_softmax) {
    for (int e = lane; e < routing.experts; e += lanes_of_warp) largest = fmaxf(largest, of_token[e]);
    largest = warp_max(largest);
    for (int e = lane; e < routing.experts; e += lanes_of_warp) sum += expf(of_token[e] - largest);
    sum = warp_sum(sum);
  }
  for (int e = lane; e < routing.experts; e += lanes_of_warp) {
    const float score = routing.score != ScoreFunction::softmax ? score_of_logit(routing.score, of_token[e])
                        : routing.pre_softmax                   ? expf(of_token[e] - largest) / sum
                                                                : of_token[e];
    scores[token * routing.experts + e] = bias == nullptr ? score : score + bias[e];
  }
}

/// A warp per token: choices [T,k] in order of falling scores.
__global__ void choose_by_scores_kernel(const float* scores, int* choices, TokenRouting routing) {
  TANDEM_SHARED(float, of_nodes, warps_of_route* most_nodes);
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp;
  const std::int64_t token = std::int64_t{blockIdx.x} * warps_of_route + warp;
  if (token >= routing.tokens) return;
  const float* const of_token = scores + token * routing.experts;
  std::uint64_t nodes = ~std::uint64_t{0};
  if (routing.node_limit > 0) nodes = best_nodes(of_token, routing, of_nodes + warp * most_nodes);
  const int node_size = routing.experts_of_node();
  const auto in_nodes = [=](int expert) { return (nodes >> (expert / node_size) & 1U) != 0; };
  Candidate best = before_all;
  for (int j = 0; j < routing.top_k; ++j) {
    best = next_best(of_token, 0, routing.experts, best, in_nodes);
    if (threadIdx.x % lanes_of_warp == 0) choices[token * routing.top_k + j] = best.index;
  }
}

/// A forced load: choice j of a group's token t is the place t + j * (tokens of the group) in the list of all choices.
struct ForceChoices {
  static constexpr int vector = 1;
  int* choices;
  TokenRouting routing;  ///< with as many slots as there are choices

  static TokenRouting of_load(RoutingAttributes attributes, std::int64_t tokens) {
    attributes.slots = attributes.forced_load();
    return TokenRouting(attributes, tokens);
  }

  template <int n>
  TANDEM_DEVICE void at(std::int64_t token) const {
    const auto in_group = static_cast<int>(routing.index_in_group(token)), tokens = static_cast<int>(routing.tokens_of_group());
    int* const mine = choices + token * routing.top_k;
    if (routing.node_limit > 0) return choose_within_nodes(in_group, tokens, mine);
    for (int j = 0; j < routing.top_k; ++j) mine[j] = routing.expert_at(in_group + j * tokens, 0, routing.experts - 1);
  }

  /// First visits to nodes are dealt like that, then in each node its slots to the visits.
  TANDEM_DEVICE void choose_within_nodes(int in_group, int tokens, int* mine) const {
    const int per_visit = routing.top_k / routing.node_limit, size = routing.experts_of_node();
    const auto visits_of = [&](int node) {
      return (routing.slots_before[(node + 1) * size] - routing.slots_before[node * size]) / per_visit;
    };
    int node = 0, visits_before = 0;
    for (int j = 0; j < routing.node_limit; ++j) {
      const int place = in_group + j * tokens;
      for (; place >= visits_before + visits_of(node) && node + 1 < routing.nodes; ++node) visits_before += visits_of(node);
      const int first = node * size, visit = place - visits_before;
      for (int i = 0; i < per_visit; ++i)
        *mine++ = routing.expert_at(routing.slots_before[first] + visit + i * visits_of(node), first, first + size - 1);
    }
  }
};

/// Expert choice: choice j of each token is expert j, for better or worse.
struct OfferAll {
  static constexpr int vector = 1;
  int* choices;
  int experts;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t choice) const {
    choices[choice] = static_cast<int>(choice % experts);
  }
};

struct ChooseByHash {
  static constexpr int vector = 1;
  const std::int32_t* tokens;
  int* choices;
  int top_k, experts;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t choice) const {
    choices[choice] = hashed_expert(tokens[choice / top_k], static_cast<int>(choice % top_k), top_k, experts);
  }
};

/// by_group [groups][tokens of the group]: the tokens of each group, in their order.
struct GroupTokens {
  static constexpr int vector = 1;
  int* by_group;
  TokenRouting routing;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t token) const {
    by_group[routing.group_of(token) * routing.tokens_of_group() + routing.index_in_group(token)] = static_cast<int>(token);
  }
};

/// Block (e, g) gives expert e's slots to the tokens of group g that chose it, in their order.
__global__ void deal_slots_kernel(const int* choices, const int* by_group, std::int32_t* slots, TokenRouting routing) {
  TANDEM_SHARED(int, of_warps, warps_of_route);
  const int expert = static_cast<int>(blockIdx.x), group = static_cast<int>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp, lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const int capacity = routing.slots_of(expert), first = routing.first_slot(expert, group);
  const auto tokens = static_cast<int>(routing.tokens_of_group());
  int taken = 0;
  for (int begin = 0; begin < tokens; begin += threads_of_route) {
    const int i = begin + static_cast<int>(threadIdx.x);
    std::int64_t choice = -1;
    if (i < tokens) {
      const std::int64_t of_token = std::int64_t{by_group[group * std::int64_t{tokens} + i]} * routing.top_k;
      for (int j = 0; j < routing.top_k; ++j)
        if (choices[of_token + j] == expert) choice = of_token + j;
    }
    const unsigned takers = __ballot_sync(every_lane, choice >= 0);
    if (lane == 0) of_warps[warp] = __popc(takers);
    __syncthreads();
    int number = taken + __popc(takers & ((1U << lane) - 1));
    for (int w = 0; w < warps_of_route; ++w) {
      if (w < warp) number += of_warps[w];
      taken += of_warps[w];
    }
    if (choice >= 0) slots[choice] = number < capacity ? first + number : -1 - expert;
    __syncthreads();  // before the counts are overwritten
  }
}

/// The number of the block's threads that offer something, summed; `of_warps` is the block's.
TANDEM_DEVICE int count_in_block(int mine, int* of_warps) {
  for (int lanes = lanes_of_warp / 2; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(every_lane, mine, lanes);
  if (threadIdx.x % lanes_of_warp == 0) of_warps[threadIdx.x / lanes_of_warp] = mine;
  __syncthreads();
  int sum = 0;
  for (int w = 0; w < warps_of_route; ++w) sum += of_warps[w];
  __syncthreads();  // before the counts are overwritten
  return sum;
}

/// Expert choice, block (e, g): expert e takes the tokens of group g with the highest gates. Gates are not negative, so that
/// their bits as integers are in their order: the lowest gate that is taken is found bit by bit.
__global__ void take_tokens_kernel(const float* gates, const int* by_group, std::int32_t* slots, TokenRouting routing) {
  TANDEM_SHARED(int, of_warps, warps_of_route);
  constexpr int highest_bit = 30;
  const int expert = static_cast<int>(blockIdx.x), group = static_cast<int>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp, lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const int capacity = routing.slots_of(expert), first = routing.first_slot(expert, group);
  const auto tokens = static_cast<int>(routing.tokens_of_group());
  const auto choice_of = [&](int i) {
    return std::int64_t{by_group[group * std::int64_t{tokens} + i]} * routing.experts + expert;
  };
  const auto key_of = [&](int i) { return __float_as_int(gates[choice_of(i)]); };
  const auto count_from = [&](int key) {
    int mine = 0;
    for (int i = static_cast<int>(threadIdx.x); i < tokens; i += threads_of_route) mine += key_of(i) >= key ? 1 : 0;
    return count_in_block(mine, of_warps);
  };
  int lowest = 0;  // the highest key that as many tokens reach as the expert takes
  for (int bit = highest_bit; bit >= 0; --bit)
    if (count_from(lowest | (1 << bit)) >= capacity) lowest |= 1 << bit;
  int ties_left = capacity - count_from(lowest + 1), taken = 0;
  for (int begin = 0; begin < tokens; begin += threads_of_route) {
    const int i = begin + static_cast<int>(threadIdx.x), key = i < tokens ? key_of(i) : -1;
    const unsigned ties = __ballot_sync(every_lane, key == lowest);
    if (lane == 0) of_warps[warp] = __popc(ties);
    __syncthreads();
    int ties_before = __popc(ties & ((1U << lane) - 1)), all_ties = 0;
    for (int w = 0; w < warps_of_route; ++w) {
      if (w < warp) ties_before += of_warps[w];
      all_ties += of_warps[w];
    }
    __syncthreads();
    const bool takes = key > lowest || (key == lowest && ties_before < ties_left);
    const unsigned takers = __ballot_sync(every_lane, takes);
    if (lane == 0) of_warps[warp] = __popc(takers);
    __syncthreads();
    int number = taken + __popc(takers & ((1U << lane) - 1));
    for (int w = 0; w < warps_of_route; ++w) {
      if (w < warp) number += of_warps[w];
      taken += of_warps[w];
    }
    if (i < tokens) slots[choice_of(i)] = takes ? first + number : -1 - expert;
    ties_left = larger(0, ties_left - all_ties);
    __syncthreads();  // before the counts are overwritten
  }
}

/// A warp per token: the softmax over the chosen experts; for one choice, with pre_softmax, or where experts choose, over all.
__global__ void gates_kernel(const float* logits, const int* choices, float* gates, TokenRouting routing) {
  const std::int64_t token = std::int64_t{blockIdx.x} * warps_of_route + threadIdx.x / lanes_of_warp;
  if (token >= routing.tokens) return;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const float* const of_token = logits + token * routing.experts;
  const int* const chosen = choices + token * routing.top_k;
  const bool all = routing.top_k == 1 || routing.pre_softmax || routing.expert_choice;
  const int count = all ? routing.experts : routing.top_k;
  const auto logit = [&](int i) { return of_token[all ? i : chosen[i]]; };
  float largest = -INFINITY, sum = 0;
  for (int i = lane; i < count; i += lanes_of_warp) largest = fmaxf(largest, logit(i));
  largest = warp_max(largest);
  for (int i = lane; i < count; i += lanes_of_warp) sum += expf(logit(i) - largest);
  sum = warp_sum(sum);
  for (int j = lane; j < routing.top_k; j += lanes_of_warp)
    gates[token * routing.top_k + j] = expf(of_token[chosen[j]] - largest) / sum * routing.scaling;
}

/// A warp per token: the scores of the chosen experts, of several as shares of their sum.
__global__ void score_gates_kernel(const float* logits, const int* choices, float* gates, TokenRouting routing) {
  const std::int64_t token = std::int64_t{blockIdx.x} * warps_of_route + threadIdx.x / lanes_of_warp;
  if (token >= routing.tokens) return;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const float* const of_token = logits + token * routing.experts;
  const int* const chosen = choices + token * routing.top_k;
  float sum = 0;
  for (int j = lane; j < routing.top_k; j += lanes_of_warp) sum += score_of_logit(routing.score, of_token[chosen[j]]);
  sum = routing.top_k == 1 ? 1 : warp_sum(sum) + least_sum_of_scores;
  for (int j = lane; j < routing.top_k; j += lanes_of_warp)
    gates[token * routing.top_k + j] = score_of_logit(routing.score, of_token[chosen[j]]) / sum * routing.scaling;
}

/// Whether tokens choose by something else than the logits.
bool chooses_by_scores(const RoutingAttributes& attributes) {
  return !attributes.forced && !attributes.expert_choice && !attributes.hashed &&
         (attributes.score != ScoreFunction::softmax || attributes.pre_softmax || attributes.biased);
}

}  // namespace

void route_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  check_shapes(OpKind::route, operands, any);
  const DeviceTensor &logits = operands.front(), &gates = operands[operands.size() - 2], &slots = operands.back();
  const float* const bias = attributes.biased ? operands[1].as<const float>() : nullptr;
  expect_types(!attributes.biased || operands[1].dtype == DType::f32, "biases of experts are fp32");
  expect_types(!attributes.hashed || operands[1].dtype == DType::i32, "tokens are int32");
  expect_types(of_one_type(logits, gates) && logits.dtype == DType::f32 && slots.dtype == DType::i32, "route computes in fp32");
  if (attributes.nodes > most_nodes) throw std::logic_error("kernels route to at most 64 nodes");
  const std::int64_t tokens = rows_of(logits.shape);
  const TokenRouting routing(attributes, tokens);
  auto* const choices = static_cast<int*>(queue.scratch);
  int* const by_group = choices + tokens * attributes.top_k;
  const auto* const of_logits = logits.as<const float>();
  const Grid by_warps{dim3(blocks_along_x(divide_up(tokens, warps_of_route))), dim3(threads_of_route)};
  const float* scores = of_logits;
  if (chooses_by_scores(attributes)) {
    auto* const made = reinterpret_cast<float*>(by_group + tokens);
    launch("route", queue, by_warps, scores_kernel, of_logits, bias, made, routing);
    scores = made;
  }
  if (attributes.forced)
    launch_elementwise("route", queue, tokens, true, ForceChoices{choices, ForceChoices::of_load(attributes, tokens)});
  else if (attributes.expert_choice)
    launch_elementwise("route", queue, tokens * routing.experts, true, OfferAll{choices, routing.experts});
  else if (attributes.hashed)
    launch_elementwise("route", queue, tokens * routing.top_k, true,
                       ChooseByHash{operands[1].as<const std::int32_t>(), choices, routing.top_k, routing.experts});
  else
    launch("route", queue, by_warps, choose_by_scores_kernel, scores, choices, routing);
  launch("route", queue, by_warps, routing.score != ScoreFunction::softmax ? score_gates_kernel : gates_kernel, of_logits,
         choices, gates.as<float>(), routing);
  launch_elementwise("route", queue, tokens, true, GroupTokens{by_group, routing});
  const dim3 experts_and_groups(static_cast<unsigned>(routing.experts), static_cast<unsigned>(routing.groups));
  if (attributes.expert_choice)
    return launch("route", queue, {experts_and_groups, dim3(threads_of_route)}, take_tokens_kernel, gates.as<const float>(),
                  by_group, slots.as<std::int32_t>(), routing);
  launch("route", queue, {experts_and_groups, dim3(threads_of_route)}, deal_slots_kernel, choices, by_group,
         slots.as<std::int32_t>(), routing);
}

std::size_t route_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const Shape& logits = operands.front().shape;
  const std::int64_t scores = chooses_by_scores(std::get<RoutingAttributes>(any)) ? logits.elements() : 0;
  return static_cast<std::size_t>(operands.back().shape.elements() + rows_of(logits)) * sizeof(int) +
         static_cast<std::size_t>(scores) * sizeof(float);
}

}  // namespace tandem
