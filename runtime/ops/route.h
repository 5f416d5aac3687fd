#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/hash.h"
#include "runtime/ops/operation.h"

namespace tandem {

/// route: logits [T,E], fp32, under `biased` also bias [E], fp32, under `hashed` also tokens [T], int32; gates [T,k], fp32, slots
/// [T,k], int32.
///
/// Each token goes to its k experts of the highest scores; under a node limit M among those of the M nodes with the highest sum
/// of their best max(1, k/M) scores (DeepSeek-V3, arXiv 2412.19437, section 2.1.2; group_limited_topk of Megatron-Core), or of as
/// many as `best_of_node` says (one in DeepSeek-V2, arXiv 2405.04434, section 2.2.2). Scores and gates are, as
/// topk_routing_with_score_function of Megatron-Core has them (megatron/core/transformer/moe/moe_utils.py), with c for `scaling`:
///
///                         scores                gates
///   softmax               logits                c softmax over the k chosen experts, for k = 1 over all
///   softmax, pre_softmax  p = softmax over all  c p
///   sigmoid               s = sigmoid, + bias   c s / (sum of s over the k chosen experts), for k = 1 c s
///   sqrtsoftplus          the same with s = sqrt(log(1 + exp))  (DeepseekV4TopKRouter of transformers)
///
/// Choices take the slots of their expert in the order of the tokens; who finds none left is dropped and has slot -1 - expert.
///
/// Under `hashed` the token's number chooses instead, whatever the logits are (Roller et al. 2021, arXiv 2106.04426; DeepSeek-V4,
/// which keeps the choices as a table by token): choice j is one of the experts [j E / k, (j + 1) E / k), by `hashed_expert`.
/// Gates are as above.
///
/// A forced load instead gives expert e exactly load[e] of a group's choices, as many as it has slots unless said otherwise: they
/// stand in a list, the experts one after the other, and token t of T takes the places t, t + T, ... so that its experts differ
/// while no expert has more than T slots. Under a node limit M a token visits M nodes, where it takes k/M experts: first nodes
/// are dealt in this way, with a visit for every k/M slots there, then each node's experts to its visits. Where the load gives an
/// expert more choices than it has slots, those of the first tokens find one, and the others are dropped.
///
/// Under expert choice (Zhou et al. 2022, arXiv 2202.09368, section 3.2) it is the experts that choose: expert e takes the
/// slots[e] tokens of a group that have the highest probability, by the softmax over all experts; of equal ones the first. That
/// is their gate. k is the number of experts: choice e of a token is the one of expert e, and -1 - e where it passes the token
/// by.
CostFunction route_cost;
HostKernel route_host;

/// How many of a node's best scores it is chosen by, under a node limit.
inline std::int32_t scores_of_node(const RoutingAttributes& attributes) {
  return attributes.best_of_node > 0 ? attributes.best_of_node
                                     : std::max(1, attributes.top_k / std::max(1, attributes.node_limit));
}

/// Choice j of k among the experts, by the number of a token.
TANDEM_HOST_DEVICE inline std::int32_t hashed_expert(std::int32_t token, int j, int k, int experts) {
  const int first = static_cast<int>(std::int64_t{j} * experts / k), last = static_cast<int>((std::int64_t{j} + 1) * experts / k);
  return first + static_cast<int>(hash_of_place(0, token, j) % static_cast<std::uint64_t>(last - first));
}

/// count_by_sequence: slots; counts [sequences,E], fp32: how many of each sequence's choices are of each expert, those among them
/// that found no slot. Row t is of sequence t mod sequences.
CostFunction count_by_sequence_cost;
HostKernel count_by_sequence_host;

/// route_backward: logits, slots, where there are `sequences` their counts, dgates [T,k]; dlogits [T,E]. Adds the gradient of the
/// balance loss (Fedus et al. 2021, equation 4) of each group, E * sum over e of (share of choices of e) * (mean probability of
/// e), its shares being constants. With sigmoid and sqrtsoftplus the probability of e is s_e / (sum of s over all experts). There
/// is no such loss under expert choice, which balances by itself: equal shares make the sum a constant. With `sequences` the loss
/// is that of each sequence in place of each group, whose counts are those of all ranks that route tokens of it: a token's share
/// of its gradient needs nothing else of the others.
CostFunction route_backward_cost;
HostKernel route_backward_host;

}  // namespace tandem
