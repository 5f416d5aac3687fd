#pragma once

#include <cstdint>
#include <stdexcept>

#include "runtime/cuda/module/device.h"
#include "runtime/ops/attributes.h"
#include "runtime/ops/route.h"

namespace tandem {

/// Route's attributes as kernels read them: RoutingAttributes without its vector.
struct TokenRouting {
  static constexpr int most_experts = 1024;

  int experts, top_k, groups, zigzag, parts, block, nodes, node_limit, best_of_node;
  bool expert_choice, pre_softmax;
  ScoreFunction score;
  float scaling;
  std::int64_t tokens;
  int slots_before[most_experts + 1];  ///< of all experts with lower numbers

  /// Throws std::logic_error when there are more experts than a kernel can be passed.
  TokenRouting(const RoutingAttributes& attributes, std::int64_t token_count)
      : experts(static_cast<int>(attributes.slots.size())),
        top_k(attributes.top_k),
        groups(attributes.groups),
        zigzag(attributes.zigzag),
        parts(attributes.parts),
        block(attributes.block),
        nodes(attributes.nodes),
        node_limit(attributes.node_limit),
        best_of_node(scores_of_node(attributes)),
        expert_choice(attributes.expert_choice),
        pre_softmax(attributes.pre_softmax),
        score(attributes.score),
        scaling(attributes.scaling),
        tokens(token_count) {
    if (experts > most_experts) throw std::logic_error("kernels route to at most 1024 experts");
    slots_before[0] = 0;
    for (int e = 0; e < experts; ++e) slots_before[e + 1] = slots_before[e] + attributes.slots[static_cast<std::size_t>(e)];
  }

  TANDEM_DEVICE int slots_of(int expert) const { return slots_before[expert + 1] - slots_before[expert]; }
  TANDEM_DEVICE int experts_of_part() const { return experts / parts; }
  TANDEM_DEVICE int experts_of_node() const { return experts / nodes; }
  TANDEM_DEVICE std::int64_t tokens_of_group() const { return tokens / groups; }

  /// The expert, from `first` on, that has the place in the list of all slots, the experts one after the other.
  TANDEM_DEVICE int expert_at(int place, int first, int last) const {
    while (first < last) {  // the last whose slots begin at the place or before
      const int middle = (first + last + 1) / 2;
      if (slots_before[middle] <= place)
        first = middle;
      else
        last = middle - 1;
    }
    return first;
  }

  TANDEM_DEVICE int first_slot(int expert, int group) const {
    const int part = expert / experts_of_part();
    return (part * groups + group) * block + slots_before[expert] - slots_before[part * experts_of_part()];
  }

  /// The expert of a choice, by its slot; also when it was dropped.
  TANDEM_DEVICE int expert_of(int slot) const {
    if (slot < 0) return -1 - slot;
    const int first = slot / (groups * block) * experts_of_part();
    return expert_at(slots_before[first] + slot % block, first, first + experts_of_part() - 1);
  }

  /// Where a chunk of the 2 zigzag ranks' tokens lies in the sequence.
  TANDEM_DEVICE std::int64_t place_of_chunk(std::int64_t chunk) const {
    return chunk < zigzag ? 2 * chunk : 2 * (2 * zigzag - 1 - chunk) + 1;
  }

  TANDEM_DEVICE int group_of(std::int64_t token) const {
    std::int64_t place = token;
    if (zigzag > 0) {
      const std::int64_t size = tokens / (2 * zigzag);
      place = place_of_chunk(token / size) * size + token % size;
    }
    return static_cast<int>(place / tokens_of_group());
  }

  /// How many tokens of the same group come before.
  TANDEM_DEVICE std::int64_t index_in_group(std::int64_t token) const {
    if (zigzag == 0) return token % tokens_of_group();
    const std::int64_t begin = group_of(token) * tokens_of_group(), end = begin + tokens_of_group();
    const std::int64_t size = tokens / (2 * zigzag);
    std::int64_t before = 0;
    for (std::int64_t chunk = 0; chunk <= token / size; ++chunk) {
      const std::int64_t first = place_of_chunk(chunk) * size;
      const std::int64_t last = chunk < token / size ? first + size : first + token % size;
      before += larger<std::int64_t>(0, smaller(last, end) - larger(first, begin));
    }
    return before;
  }
};

/// Added to sums of scores, as Megatron-Core does, where all are 0.
constexpr float least_sum_of_scores = 1e-20F;

/// What gates are shares of, where that is no softmax, and its derivative.
TANDEM_DEVICE float score_of_logit(ScoreFunction function, float logit) {
  if (function == ScoreFunction::sigmoid) return 1 / (1 + expf(-logit));
  return sqrtf(logit > 20 ? logit : log1pf(expf(logit)));
}
TANDEM_DEVICE float slope_of_score(ScoreFunction function, float logit) {
  const float score = score_of_logit(function, logit);
  return function == ScoreFunction::sigmoid ? score * (1 - score) : 1 / (1 + expf(-logit)) / (2 * score);
}

}  // namespace tandem
