#include "runtime/ops/route.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/ops/operands.h"
#include "runtime/ops/routing.h"

namespace tandem {
namespace {

void check_shapes(const Shape& logits, const Shape& per_choice, const RoutingAttributes& attributes) {
  expect_shapes(rows_of(logits) == rows_of(per_choice) && columns_of(per_choice) == attributes.top_k &&
                    columns_of(logits) == static_cast<std::int64_t>(attributes.slots.size()) &&
                    rows_of(logits) % attributes.groups == 0,
                "route needs logits [T,E] and [T,k] per choice, T a multiple of the groups");
}

/// The logits, gates and slots of `route`.
template <typename OperandT>
std::array<OperandT, 3> operands_of_route(std::span<const OperandT> operands, const RoutingAttributes& attributes) {
  if (!attributes.biased && !attributes.hashed) return unpack<3>(operands, "route");
  expect_shapes(!attributes.biased || !attributes.hashed, "a bias changes no choice by a token's number");
  const auto [logits, beside, gates, slots] = unpack<4>(operands, "route");
  expect_shapes(beside.shape.elements() == (attributes.biased ? columns_of(logits.shape) : rows_of(logits.shape)),
                "route needs a bias [E], or tokens [T]");
  return {logits, gates, slots};
}

/// The logits, slots, gradients of the gates, and gradients of the logits of `route_backward`.
template <typename OperandT>
std::array<OperandT, 4> operands_of_route_backward(std::span<const OperandT> operands, const RoutingAttributes& attributes) {
  if (attributes.sequences == 0) return unpack<4>(operands, "route_backward");
  const auto [logits, slots, counts, dgates, dlogits] = unpack<5>(operands, "route_backward");
  return {logits, slots, dgates, dlogits};
}

void check_counts_by_sequence(const Shape& counts, const Shape& slots, const RoutingAttributes& attributes) {
  expect_shapes(attributes.sequences > 0 && rows_of(slots) % attributes.sequences == 0 &&
                    counts == Shape(attributes.sequences, static_cast<std::int64_t>(attributes.slots.size())),
                "counts by sequence are [sequences,E], of tokens that sequences take turns in");
}

/// The tokens of each group, in their order.
std::vector<std::vector<std::int64_t>> tokens_by_group(std::int64_t tokens, const RoutingAttributes& attributes) {
  const std::int64_t ranks = attributes.zigzag, of_group = tokens / attributes.groups;
  std::vector<std::vector<std::int64_t>> groups(static_cast<std::size_t>(attributes.groups));
  for (std::int64_t token = 0; token < tokens; ++token) {
    std::int64_t place = token;
    if (ranks > 0) {  // rank r holds chunks r and 2 ranks - 1 - r, one after the other
      const std::int64_t size = tokens / (2 * ranks), chunk = token / size;
      place = (chunk < ranks ? 2 * chunk : 2 * (2 * ranks - 1 - chunk) + 1) * size + token % size;
    }
    groups[static_cast<std::size_t>(place / of_group)].push_back(token);
  }
  return groups;
}

std::int32_t first_slot(const RoutingAttributes& attributes, const std::vector<std::int32_t>& offsets, std::size_t expert,
                        std::int32_t group) {
  const std::size_t per_part = offsets.size() / static_cast<std::size_t>(attributes.parts);
  const auto part = static_cast<std::int32_t>(expert / per_part);
  return (part * attributes.groups + group) * attributes.block + offsets[expert];
}

/// A thing that was dealt, and how many got one before.
struct Dealt {
  std::int32_t thing, number;
};

/// Deals `counts[i]` of thing i, in their order, to the receivers in turn: nobody gets two of a thing of which there are not more
/// than receivers.
std::vector<std::vector<Dealt>> deal(std::span<const std::int32_t> counts, std::size_t receivers) {
  std::vector<std::vector<Dealt>> hands(receivers);
  std::size_t place = 0;
  for (std::size_t thing = 0; thing < counts.size(); ++thing) {
    for (std::int32_t number = 0; number < counts[thing]; ++number)
      hands[place++ % receivers].push_back({static_cast<std::int32_t>(thing), number});
  }
  return hands;
}

/// By token of a group, under a node limit: nodes are dealt to the tokens, and in each node its experts to those who visit it.
std::vector<std::vector<std::int32_t>> forced_within_nodes(const RoutingAttributes& attributes, std::size_t tokens) {
  const std::size_t node_size = attributes.slots.size() / static_cast<std::size_t>(attributes.nodes);
  std::vector<std::int32_t> visits;
  std::vector<std::vector<std::vector<Dealt>>> in_node;
  for (std::size_t first = 0; first < attributes.slots.size(); first += node_size) {
    const std::span<const std::int32_t> slots(attributes.forced_load().data() + first, node_size);
    visits.push_back(std::accumulate(slots.begin(), slots.end(), 0) / (attributes.top_k / attributes.node_limit));
    in_node.push_back(deal(slots, static_cast<std::size_t>(visits.back())));
  }
  std::vector<std::vector<std::int32_t>> choices;
  for (const std::vector<Dealt>& nodes : deal(visits, tokens)) {
    std::vector<std::int32_t>& of_token = choices.emplace_back();
    for (const auto& [node, visit] : nodes) {
      for (const Dealt& expert : in_node[static_cast<std::size_t>(node)][static_cast<std::size_t>(visit)])
        of_token.push_back(node * static_cast<std::int32_t>(node_size) + expert.thing);
    }
  }
  return choices;
}

/// By token of a group.
std::vector<std::vector<std::int32_t>> forced_choices(const RoutingAttributes& attributes, std::size_t tokens) {
  if (attributes.node_limit > 0) return forced_within_nodes(attributes, tokens);
  std::vector<std::vector<std::int32_t>> choices;
  for (const std::vector<Dealt>& experts : deal(attributes.forced_load(), tokens)) {
    choices.emplace_back();
    for (const Dealt& expert : experts) choices.back().push_back(expert.thing);
  }
  return choices;
}

/// Expert numbers sorted by falling score, the first `count` of them; experts of equal scores in their own order.
std::vector<std::int32_t> best(const float* scores, std::vector<std::int32_t> candidates, std::int32_t count) {
  std::partial_sort(candidates.begin(), candidates.begin() + count, candidates.end(),
                    [&](std::int32_t a, std::int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  candidates.resize(static_cast<std::size_t>(count));
  return candidates;
}

std::vector<std::int32_t> experts_within_nodes(const float* scores, const RoutingAttributes& attributes) {
  const auto node_size = static_cast<std::int32_t>(attributes.slots.size()) / attributes.nodes;
  const std::int32_t counted = std::min(node_size, scores_of_node(attributes));
  std::vector<float> score(static_cast<std::size_t>(attributes.nodes), 0.0F);
  std::vector<std::int32_t> nodes(score.size()), experts(static_cast<std::size_t>(node_size)), candidates;
  std::iota(nodes.begin(), nodes.end(), 0);
  for (const std::int32_t node : nodes) {
    std::iota(experts.begin(), experts.end(), node * node_size);
    for (const std::int32_t e : best(scores, experts, counted)) score[static_cast<std::size_t>(node)] += scores[e];
  }
  for (const std::int32_t node : best(score.data(), nodes, attributes.node_limit)) {
    for (std::int32_t e = 0; e < node_size; ++e) candidates.push_back(node * node_size + e);
  }
  return candidates;
}

std::vector<std::int32_t> chosen_by_numbers(const float* scores, const RoutingAttributes& attributes) {
  std::vector<std::int32_t> candidates(attributes.slots.size());
  std::iota(candidates.begin(), candidates.end(), 0);
  if (attributes.node_limit > 0) candidates = experts_within_nodes(scores, attributes);
  return best(scores, std::move(candidates), attributes.top_k);
}

std::vector<std::int32_t> chosen_by_hash(std::int32_t token, const RoutingAttributes& attributes) {
  std::vector<std::int32_t> chosen;
  for (std::int32_t j = 0; j < attributes.top_k; ++j)
    chosen.push_back(hashed_expert(token, j, attributes.top_k, static_cast<int>(attributes.slots.size())));
  return chosen;
}

std::vector<std::int32_t> expert_numbers(std::size_t count) {
  std::vector<std::int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Softmax of logits[i] over i in `of`.
std::vector<double> softmax(const float* logits, const std::vector<std::int32_t>& of) {
  double largest = -INFINITY, sum = 0;
  for (const std::int32_t i : of) largest = std::max(largest, double{logits[i]});
  std::vector<double> result;
  for (const std::int32_t i : of) sum += result.emplace_back(std::exp(logits[i] - largest));
  for (double& value : result) value /= sum;
  return result;
}

std::vector<double> probabilities(const float* logits, std::size_t experts) { return softmax(logits, expert_numbers(experts)); }

double router_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// What gates are shares of, where that is no softmax, and its derivative, of a logit and that.
double score_of(ScoreFunction function, double x) {
  if (function == ScoreFunction::sigmoid) return router_sigmoid(x);
  return std::sqrt(x > 20 ? x : std::log1p(std::exp(x)));
}
double score_slope(ScoreFunction function, double x, double score) {
  return function == ScoreFunction::sigmoid ? score * (1 - score) : router_sigmoid(x) / (2 * score);
}

/// Scores of logits[i] over i in `of`, as shares of their sum.
struct ScoreShares {
  std::vector<double> scores, shares;
  double sum = 1e-20;  ///< as Megatron-Core, where all are 0
};
ScoreShares score_shares(ScoreFunction function, const float* logits, const std::vector<std::int32_t>& of) {
  ScoreShares result;
  for (const std::int32_t i : of) result.sum += result.scores.emplace_back(score_of(function, logits[i]));
  for (const double s : result.scores) result.shares.push_back(s / result.sum);
  return result;
}

/// What a token chooses by. `bias`: by expert, or null.
std::vector<float> scores_of(const float* logits, const float* bias, const RoutingAttributes& attributes) {
  const std::size_t experts = attributes.slots.size();
  std::vector<float> scores(logits, logits + experts);
  if (attributes.score != ScoreFunction::softmax) {
    for (float& score : scores) score = static_cast<float>(score_of(attributes.score, score));
  } else if (attributes.pre_softmax) {
    std::ranges::transform(probabilities(logits, experts), scores.begin(), [](double p) { return static_cast<float>(p); });
  }
  for (std::size_t e = 0; bias != nullptr && e < experts; ++e) scores[e] += bias[e];
  return scores;
}

/// Whether a gate is its expert's probability or score, whatever the others chosen have.
bool gates_alone(const RoutingAttributes& attributes) { return attributes.top_k == 1 || attributes.pre_softmax; }

/// The gates of a token that chose these experts.
std::vector<double> gates_of(const float* logits, const std::vector<std::int32_t>& chosen, const RoutingAttributes& attributes) {
  std::vector<double> gates;
  if (attributes.score != ScoreFunction::softmax) {
    const ScoreShares of_chosen = score_shares(attributes.score, logits, chosen);
    gates = chosen.size() == 1 ? of_chosen.scores : of_chosen.shares;
  } else if (gates_alone(attributes)) {
    const std::vector<double> p = probabilities(logits, attributes.slots.size());
    for (const std::int32_t e : chosen) gates.push_back(p[static_cast<std::size_t>(e)]);
  } else {
    gates = softmax(logits, chosen);
  }
  for (double& gate : gates) gate *= attributes.scaling;
  return gates;
}

/// Lets the experts take tokens of a group: fills the rows of `gates` and `slots` that belong to these tokens.
void let_experts_choose(const HostTensor& logits, const std::vector<std::int64_t>& tokens, std::int32_t group,
                        const RoutingAttributes& attributes, const HostTensor& gates, const HostTensor& slots) {
  const auto experts = static_cast<std::int64_t>(attributes.slots.size());
  for (const std::int64_t token : tokens) {
    const std::vector<double> p = probabilities(logits.f32() + token * experts, attributes.slots.size());
    for (std::int64_t e = 0; e < experts; ++e)
      gates.f32()[token * experts + e] = static_cast<float>(p[static_cast<std::size_t>(e)]);
  }
  const std::vector<std::int32_t> offsets = offsets_in_block(attributes);
  std::vector<float> of_expert(tokens.size());
  std::vector<std::int32_t> all(tokens.size());
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto expert = static_cast<std::size_t>(e);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      of_expert[t] = gates.f32()[tokens[t] * experts + e];
      slots.i32()[tokens[t] * experts + e] = static_cast<std::int32_t>(-1 - e);
    }
    std::vector<std::int32_t> taken = best(of_expert.data(), all, attributes.slots[expert]);
    std::ranges::sort(taken);
    std::int32_t slot = first_slot(attributes, offsets, expert, group);
    for (const std::int32_t t : taken) slots.i32()[tokens[static_cast<std::size_t>(t)] * experts + e] = slot++;
  }
}

/// dlogits of one token whom experts chose, from the gradients of its gates: those of experts that passed it by are 0.
void taken_token_gradient(std::span<const float> logits, const std::int32_t* slots, const float* dgates, float* dlogits) {
  const std::vector<double> p = probabilities(logits.data(), logits.size());
  const auto dgate = [&](std::size_t e) { return slots[e] < 0 ? 0.0 : double{dgates[e]}; };
  double mean = 0;
  for (std::size_t e = 0; e < p.size(); ++e) mean += p[e] * dgate(e);
  for (std::size_t e = 0; e < p.size(); ++e) dlogits[e] = static_cast<float>(p[e] * (dgate(e) - mean));
}

/// dlogits of one token, from the gradients of its gates and of the probabilities of all experts.
void softmax_gradient(std::span<const float> logits, const std::vector<std::int32_t>& chosen, const std::vector<double>& dgates,
                      std::vector<double> dprobabilities, bool alone, float* dlogits) {
  for (std::size_t j = 0; alone && j < chosen.size(); ++j) dprobabilities[static_cast<std::size_t>(chosen[j])] += dgates[j];
  const std::vector<double> p = probabilities(logits.data(), logits.size());
  const double mean = std::inner_product(p.begin(), p.end(), dprobabilities.begin(), 0.0);
  for (std::size_t e = 0; e < p.size(); ++e) dlogits[e] = static_cast<float>(p[e] * (dprobabilities[e] - mean));
  if (alone) return;
  const std::vector<double> gates = softmax(logits.data(), chosen);
  const double gate_mean = std::inner_product(gates.begin(), gates.end(), dgates.begin(), 0.0);
  for (std::size_t j = 0; j < gates.size(); ++j) dlogits[chosen[j]] += static_cast<float>(gates[j] * (dgates[j] - gate_mean));
}

/// The same where probabilities are shares of the sum of all scores, and gates of that of the chosen ones.
void score_gradient(ScoreFunction function, std::span<const float> logits, const std::vector<std::int32_t>& chosen,
                    const std::vector<double>& dgates, const std::vector<double>& dprobabilities, float* dlogits) {
  const ScoreShares all = score_shares(function, logits.data(), expert_numbers(logits.size()));
  const double mean = std::inner_product(all.shares.begin(), all.shares.end(), dprobabilities.begin(), 0.0);
  std::vector<double> dscores;
  for (const double dprobability : dprobabilities) dscores.push_back((dprobability - mean) / all.sum);
  const ScoreShares of_chosen = score_shares(function, logits.data(), chosen);
  const bool one = chosen.size() == 1;
  const double sum = one ? 1 : of_chosen.sum;
  const double gate_mean = one ? 0 : std::inner_product(of_chosen.shares.begin(), of_chosen.shares.end(), dgates.begin(), 0.0);
  for (std::size_t j = 0; j < chosen.size(); ++j) dscores[static_cast<std::size_t>(chosen[j])] += (dgates[j] - gate_mean) / sum;
  for (std::size_t e = 0; e < dscores.size(); ++e)
    dlogits[e] = static_cast<float>(dscores[e] * score_slope(function, logits[e], all.scores[e]));
}

void token_gradient(std::span<const float> logits, const std::vector<std::int32_t>& chosen, const float* dgates,
                    const std::vector<double>& dprobabilities, const RoutingAttributes& attributes, float* dlogits) {
  std::vector<double> scaled(dgates, dgates + chosen.size());
  for (double& dgate : scaled) dgate *= attributes.scaling;
  if (attributes.score != ScoreFunction::softmax)
    return score_gradient(attributes.score, logits, chosen, scaled, dprobabilities, dlogits);
  softmax_gradient(logits, chosen, scaled, dprobabilities, gates_alone(attributes), dlogits);
}

}  // namespace

OpCost route_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [logits, gates, slots] = operands_of_route(operands, attributes);
  check_shapes(logits.shape, slots.shape, attributes);
  const Bytes bytes = bytes_of(logits, gates, slots);
  return memory_cost(attributes.biased || attributes.hashed ? bytes + operands[1].bytes() : bytes);
}

void route_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [logits, gates, slots] = operands_of_route(operands, attributes);
  check_shapes(logits.shape, slots.shape, attributes);
  const float* const bias = attributes.biased ? operands[1].f32() : nullptr;
  const std::size_t experts = attributes.slots.size();
  const std::vector<std::int32_t> offsets = offsets_in_block(attributes);
  const auto of_group = static_cast<std::size_t>(rows_of(logits.shape) / attributes.groups);
  std::vector<std::vector<std::int32_t>> forced;
  if (attributes.forced) forced = forced_choices(attributes, of_group);
  std::int32_t group = 0;
  for (const std::vector<std::int64_t>& tokens : tokens_by_group(rows_of(logits.shape), attributes)) {
    if (attributes.expert_choice) {
      let_experts_choose(logits, tokens, group++, attributes, gates, slots);
      continue;
    }
    std::vector<std::int32_t> taken(experts, 0);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const float* of_token = logits.f32() + tokens[t] * static_cast<std::int64_t>(experts);
      const std::vector<std::int32_t> chosen = attributes.forced ? forced[t]
                                               : attributes.hashed
                                                   ? chosen_by_hash(operands[1].i32()[tokens[t]], attributes)
                                                   : chosen_by_numbers(scores_of(of_token, bias, attributes).data(), attributes);
      const std::vector<double> weights = gates_of(of_token, chosen, attributes);
      for (std::size_t j = 0; j < chosen.size(); ++j) {
        const auto e = static_cast<std::size_t>(chosen[j]);
        const std::int64_t choice = tokens[t] * attributes.top_k + static_cast<std::int64_t>(j);
        gates.f32()[choice] = static_cast<float>(weights[j]);
        const bool room = taken[e] < attributes.slots[e];
        slots.i32()[choice] = room ? first_slot(attributes, offsets, e, group) + taken[e]++ : -1 - chosen[j];
      }
    }
    ++group;
  }
}

OpCost count_by_sequence_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [slots, counts] = unpack<2>(operands, "count_by_sequence");
  check_counts_by_sequence(counts.shape, slots.shape, std::get<RoutingAttributes>(any));
  return memory_cost(bytes_of(slots, counts));
}

void count_by_sequence_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [slots, counts] = unpack<2>(operands, "count_by_sequence");
  check_counts_by_sequence(counts.shape, slots.shape, attributes);
  const std::vector<std::int32_t> offsets = offsets_in_block(attributes);
  const auto experts = static_cast<std::int64_t>(attributes.slots.size());
  std::fill_n(counts.f32(), counts.shape.elements(), 0.0F);
  for (std::int64_t choice = 0; choice < slots.shape.elements(); ++choice) {
    const std::int64_t sequence = choice / attributes.top_k % attributes.sequences;
    counts.f32()[sequence * experts + static_cast<std::int64_t>(expert_of(slots.i32()[choice], attributes, offsets))] += 1;
  }
}

OpCost route_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [logits, slots, dgates, dlogits] = operands_of_route_backward(operands, attributes);
  check_shapes(logits.shape, slots.shape, attributes);
  const Bytes bytes = bytes_of(logits, slots, dgates, dlogits);
  if (attributes.sequences == 0) return memory_cost(bytes);
  check_counts_by_sequence(operands[2].shape, slots.shape, attributes);
  return memory_cost(bytes + operands[2].bytes());
}

void route_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RoutingAttributes>(any);
  const auto [logits, slots, dgates, dlogits] = operands_of_route_backward(operands, attributes);
  check_shapes(logits.shape, slots.shape, attributes);
  const std::size_t experts = attributes.slots.size();
  const std::int64_t k = attributes.top_k;
  const std::vector<std::int32_t> offsets = offsets_in_block(attributes);
  const auto chosen_by = [&](std::int64_t token) {
    std::vector<std::int32_t> chosen;
    for (std::int64_t choice = token * k; choice < (token + 1) * k; ++choice)
      chosen.push_back(static_cast<std::int32_t>(expert_of(slots.i32()[choice], attributes, offsets)));
    return chosen;
  };
  if (attributes.expert_choice) {
    for (std::int64_t first = 0; first < logits.shape.elements(); first += static_cast<std::int64_t>(experts))
      taken_token_gradient({logits.f32() + first, experts}, slots.i32() + first, dgates.f32() + first, dlogits.f32() + first);
    return;
  }
  if (attributes.sequences > 0) {
    check_counts_by_sequence(operands[2].shape, slots.shape, attributes);
    const double of_choice = attributes.balance * static_cast<double>(experts) / static_cast<double>(attributes.sequence * k);
    for (std::int64_t token = 0; token < rows_of(logits.shape); ++token) {
      const std::int64_t first = token * static_cast<std::int64_t>(experts);
      const float* counts = operands[2].f32() + token % attributes.sequences * static_cast<std::int64_t>(experts);
      std::vector<double> slope(counts, counts + experts);
      for (double& of_expert : slope) of_expert *= of_choice;
      token_gradient({logits.f32() + first, experts}, chosen_by(token), dgates.f32() + token * k, slope, attributes,
                     dlogits.f32() + first);
    }
    return;
  }
  for (const std::vector<std::int64_t>& tokens : tokens_by_group(rows_of(logits.shape), attributes)) {
    std::vector<double> slope(experts, 0.0);  // of the balance loss, by probability
    const double of_choice =
        attributes.balance * static_cast<double>(experts) / static_cast<double>(tokens.size() * chosen_by(0).size());
    for (const std::int64_t token : tokens) {
      for (const std::int32_t e : chosen_by(token)) slope[static_cast<std::size_t>(e)] += of_choice;
    }
    for (const std::int64_t token : tokens) {
      const std::int64_t first = token * static_cast<std::int64_t>(experts);
      token_gradient({logits.f32() + first, experts}, chosen_by(token), dgates.f32() + token * k, slope, attributes,
                     dlogits.f32() + first);
    }
  }
}

}  // namespace tandem
