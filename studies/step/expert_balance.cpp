#include "studies/step/expert_balance.h"

#include <algorithm>
#include <numeric>

namespace tandem::studies {

std::int64_t ExpertBalance::all_choices() const { return std::accumulate(choices.begin(), choices.end(), std::int64_t{0}); }

std::vector<std::int32_t> ExpertBalance::dropped() const {
  std::vector<std::int32_t> dropped;
  for (std::size_t e = 0; e < choices.size(); ++e) dropped.push_back(std::max(0, choices[e] - slots[e]));
  return dropped;
}

std::int64_t ExpertBalance::all_dropped() const {
  const std::vector<std::int32_t> by_expert = dropped();
  return std::accumulate(by_expert.begin(), by_expert.end(), std::int64_t{0});
}

double ExpertBalance::safe_capacity_factor() const {
  return static_cast<double>(*std::ranges::max_element(choices)) * static_cast<double>(choices.size()) /
         static_cast<double>(all_choices());
}

double ExpertBalance::untaken_share() const {
  double share = 1;
  for (const std::int32_t taken : slots) share *= 1 - static_cast<double>(taken) / static_cast<double>(tokens);
  return share;
}

ExpertBalance balance_of(const RoutingAttributes& routing, std::int64_t tokens) {
  return {.expert_choice = routing.expert_choice,
          .tokens = tokens,
          .choices = routing.expert_choice ? routing.slots : routing.forced_load(),
          .slots = routing.slots};
}

std::optional<ExpertBalance> expert_balance(const Dag& dag) {
  for (const TaskId id : dag.first_of_kernel) {
    const Task& task = dag.tasks[id];
    if (task.op != OpKind::route) continue;
    const auto& routing = std::get<RoutingAttributes>(dag.attributes[task.attributes]);
    if (!routing.forced && !routing.expert_choice) return {};
    const std::int64_t tokens = dag.buffers[dag.operands_of(id).front().buffer].shape[0] / routing.groups;
    ExpertBalance balance = balance_of(routing, tokens);
    const auto [least, most] = std::ranges::minmax(balance.choices);
    const bool is_told = balance.expert_choice || !routing.load.empty() || most - least > 1;
    return is_told ? std::optional(balance) : std::nullopt;
  }
  return {};
}

}  // namespace tandem::studies
