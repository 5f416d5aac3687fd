#include "scenarios/mesh/token_routing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "runtime/base/divide_up.h"
#include "scenarios/mesh/expert_mesh.h"

namespace tandem::scenarios {
namespace {

std::vector<double> shares_of(const MoeSpec& moe) {
  if (!moe.load.shares.empty()) return moe.load.shares;
  std::vector<double> shares;
  for (std::int64_t e = 0; e < moe.experts; ++e) shares.push_back(std::pow(static_cast<double>(e + 1), -moe.load.zipf));
  return shares;
}

/// Splits `total` by `shares`, but gives nobody more than `most`.
std::vector<double> capped_split(const std::vector<double>& shares, double total, double most) {
  std::vector<double> split(shares.size(), 0.0);
  std::vector<bool> full(shares.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    double left = total, open = 0;
    for (std::size_t e = 0; e < shares.size(); ++e) (full[e] ? left : open) += full[e] ? -most : shares[e];
    for (std::size_t e = 0; e < shares.size(); ++e) {
      split[e] = full[e] ? most : open > 0 ? left * shares[e] / open : 0;
      if (full[e] || split[e] <= most) continue;
      full[e] = changed = true;
    }
  }
  return split;
}

/// Of items that are alike but that only `chosen` of them get more, those that do: spread evenly, the first among them.
std::vector<std::size_t> spread_first(std::span<const std::size_t> items, std::int64_t chosen) {
  const auto all = static_cast<std::int64_t>(items.size());
  std::vector<std::size_t> order, others;
  for (std::int64_t i = 0; i < all; ++i) {
    const bool is_chosen = divide_up((i + 1) * chosen, all) > divide_up(i * chosen, all);
    (is_chosen ? order : others).push_back(items[static_cast<std::size_t>(i)]);
  }
  order.insert(order.end(), others.begin(), others.end());
  return order;
}

std::vector<std::int32_t> rounded(const std::vector<double>& split, std::int64_t total, std::int64_t most) {
  constexpr double same = 1e-9;
  std::vector<std::int32_t> whole;
  for (const double part : split)
    whole.push_back(static_cast<std::int32_t>(std::min(std::floor(part + same), static_cast<double>(most))));
  const auto remainder = [&](std::size_t i) { return split[i] - whole[i]; };
  std::vector<std::size_t> order(split.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater<>(), remainder);
  std::int64_t missing = total - std::accumulate(whole.begin(), whole.end(), std::int64_t{0});
  // Where not all of those with one remainder get a whole one, no rank should have more of them than others.
  if (const auto places = static_cast<std::size_t>(missing); missing > 0 && places < order.size()) {
    const double last = remainder(order[places - 1]);
    const auto alike = std::ranges::equal_range(
        order, last, [](double a, double b) { return a > b + same; }, remainder);
    std::ranges::sort(alike);
    const std::vector<std::size_t> spread = spread_first(alike, missing - (alike.begin() - order.begin()));
    std::ranges::copy(spread, alike.begin());
  }
  for (std::size_t i = 0; missing > 0; i = (i + 1) % order.size()) {
    if (whole[order[i]] >= most) continue;
    ++whole[order[i]];
    --missing;
  }
  return whole;
}

/// Whole shares of `total`, none of more than `most`.
std::vector<std::int32_t> split(const std::vector<double>& shares, std::int64_t total, std::int64_t most) {
  return rounded(capped_split(shares, static_cast<double>(total), static_cast<double>(most)), total, most);
}

/// Of `places` places that hold as many of `experts` each, how many `choices` different experts lie on, on average.
double places_met(double places, std::int64_t experts, std::int64_t choices) {
  const double elsewhere = static_cast<double>(experts) * (1 - 1 / places);
  double missed = 1;
  for (std::int64_t i = 0; i < choices; ++i)
    missed *= std::max(0.0, elsewhere - static_cast<double>(i)) / static_cast<double>(experts - i);
  return places * (1 - missed);
}

/// Each expert takes a token or passes it by whatever the others do: places with experts_of_place of them all pass it by with
/// probability (1 - share)^experts_of_place.
TokenCopies copies_of_taken_token(const MoeSpec& moe, double ranks, std::int64_t nodes) {
  const auto experts = static_cast<double>(moe.experts);
  const double share = moe.experts_per_token() / experts;
  const auto met = [&](double places) { return places * (1 - std::pow(1 - share, experts / places)); };
  return {moe.experts_per_token(), met(static_cast<double>(nodes)), met(ranks)};
}

std::int32_t capacity_of(const MoeSpec& moe, std::int64_t tokens) {
  const double fair = static_cast<double>(tokens * moe.top_k) / static_cast<double>(moe.experts);
  const double factor = moe.capacity_factor > 0 ? moe.capacity_factor : 1;
  const auto capacity = static_cast<std::int32_t>(std::max(1.0, std::floor(factor * fair + 1e-9)));
  return moe.routing == Routing::expert_choice ? std::min(capacity, static_cast<std::int32_t>(tokens)) : capacity;
}

}  // namespace

TokenCopies copies_of_token(const Scenario& scenario) {
  const MoeSpec& moe = scenario.model.moe;
  const auto ranks = static_cast<double>(scenario.parallelism.ep);
  const NodeLimit limit = node_limit_of(scenario);
  const std::int64_t all_nodes = expert_nodes(scenario);
  if (moe.routing == Routing::expert_choice) return copies_of_taken_token(moe, ranks, all_nodes);
  const auto choices = static_cast<double>(moe.top_k);
  if (limit.visited == 0)
    return {choices, places_met(static_cast<double>(all_nodes), moe.experts, moe.top_k),
            places_met(ranks, moe.experts, moe.top_k)};
  const auto nodes = static_cast<double>(limit.nodes), visited = static_cast<double>(limit.visited);
  const std::int64_t in_node = std::max<std::int64_t>(1, moe.top_k / limit.visited);
  const auto met = [&](double places) {
    if (places < nodes) return places_met(places, limit.nodes, limit.visited);  // each holds several groups
    return visited * places_met(places / nodes, moe.experts / limit.nodes, in_node);
  };
  return {choices, met(static_cast<double>(all_nodes)), met(ranks)};
}

std::int64_t most_nodes_of_token(const Scenario& scenario) {
  const MoeSpec& moe = scenario.model.moe;
  if (moe.node_limit == 0) return moe.top_k;
  if (moe.groups == 0) return std::min(moe.node_limit, moe.top_k);
  const std::int64_t of_group = (expert_nodes(scenario) + moe.groups - 1) / moe.groups;
  return std::min(moe.node_limit * of_group, moe.top_k);
}

NodeLimit node_limit_of(const Scenario& scenario) {
  const MoeSpec& moe = scenario.model.moe;
  const std::int64_t nodes = moe.node_limit == 0 ? 1 : moe.groups > 0 ? moe.groups : expert_nodes(scenario);
  const bool binds = moe.node_limit > 0 && moe.node_limit < std::min(nodes, moe.top_k);
  return {.nodes = nodes, .visited = binds ? moe.node_limit : 0};
}

std::int64_t tokens_of_group(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  return scenario.training.sequence / p.cp / p.tp / p.reference_token_groups * scenario.training.micro_batch;
}

std::vector<std::int32_t> choices_by_expert(const MoeSpec& moe, std::int64_t tokens, const NodeLimit& limit) {
  const std::vector<double> shares = shares_of(moe);
  if (limit.visited == 0) return split(shares, tokens * moe.top_k, tokens);
  std::vector<std::vector<double>> in_node;
  std::vector<double> of_node;
  for (auto begin = shares.begin(); begin != shares.end(); begin += moe.experts / limit.nodes) {
    in_node.emplace_back(begin, begin + moe.experts / limit.nodes);
    of_node.push_back(std::accumulate(in_node.back().begin(), in_node.back().end(), 0.0));
  }
  std::vector<std::int32_t> choices;
  const std::vector<std::int32_t> visits = split(of_node, tokens * limit.visited, tokens);
  for (std::size_t node = 0; node < visits.size(); ++node) {
    const std::vector<std::int32_t> of_experts = split(in_node[node], visits[node] * (moe.top_k / limit.visited), visits[node]);
    choices.insert(choices.end(), of_experts.begin(), of_experts.end());
  }
  return choices;
}

std::vector<std::int32_t> slots_by_expert(const MoeSpec& moe, std::int64_t tokens, const NodeLimit& limit) {
  const bool has_capacity = moe.capacity_factor > 0 || moe.routing == Routing::expert_choice;
  if (!has_capacity) return choices_by_expert(moe, tokens, limit);
  const std::int32_t capacity = capacity_of(moe, tokens);
  if (moe.routing == Routing::expert_choice || moe.pad_to_capacity)
    return std::vector<std::int32_t>(static_cast<std::size_t>(moe.experts), capacity);
  std::vector<std::int32_t> slots = choices_by_expert(moe, tokens, limit);
  for (std::int32_t& of_expert : slots) of_expert = std::min(of_expert, capacity);
  return slots;
}

RoutingAttributes routing_of(const Scenario& scenario) {
  const MoeSpec& moe = scenario.model.moe;
  const ParallelismSpec& p = scenario.parallelism;
  const double tokens =
      static_cast<double>(scenario.training.gradient_batch(p)) * static_cast<double>(scenario.training.sequence);
  const NodeLimit limit = node_limit_of(scenario);
  const bool expert_choice = moe.routing == Routing::expert_choice;
  RoutingAttributes routing{.top_k = static_cast<std::int32_t>(expert_choice ? moe.experts : moe.top_k),
                            .groups = static_cast<std::int32_t>(p.reference_token_groups),
                            .zigzag = static_cast<std::int32_t>(p.reference_zigzag),
                            .parts = static_cast<std::int32_t>(p.ep),
                            .nodes = static_cast<std::int32_t>(limit.nodes),
                            .node_limit = static_cast<std::int32_t>(limit.visited),
                            .forced = moe.forces_choices(),
                            .balance = static_cast<float>(moe.balance_loss / tokens),
                            .slots = slots_by_expert(moe, tokens_of_group(scenario), limit),
                            .expert_choice = expert_choice,
                            .score = moe.score_function,
                            .pre_softmax = moe.pre_softmax,
                            .scaling = static_cast<float>(moe.scaling_factor),
                            .biased = moe.expert_bias,
                            .best_of_node = static_cast<std::int32_t>(moe.best_of_group)};
  if (moe.balances_sequences()) {
    routing.sequences = static_cast<std::int32_t>(scenario.training.micro_batch);
    routing.sequence = static_cast<std::int32_t>(scenario.training.sequence);
  }
  if (routing.forced) routing.load = choices_by_expert(moe, tokens_of_group(scenario), limit);
  if (routing.load == routing.slots) routing.load.clear();
  const std::int64_t per_part = moe.experts / p.ep;
  for (auto part = routing.slots.begin(); part != routing.slots.end(); part += per_part) {
    routing.block = std::max(routing.block, std::accumulate(part, part + per_part, 0));
  }
  return routing;
}

std::vector<std::uint32_t> alike_parts(const Scenario& scenario) {
  const std::vector<std::int32_t> slots = slots_by_expert(scenario.model.moe, tokens_of_group(scenario), node_limit_of(scenario));
  const std::int64_t per_part = scenario.model.moe.experts / scenario.parallelism.ep;
  std::vector<std::uint32_t> alike;
  for (std::int64_t part = 0; part < scenario.parallelism.ep; ++part) {
    const auto begin = slots.begin() + part * per_part;
    std::uint32_t first = 0;
    while (!std::equal(begin, begin + per_part, slots.begin() + first * per_part)) ++first;
    alike.push_back(first);
  }
  return alike;
}

}  // namespace tandem::scenarios
