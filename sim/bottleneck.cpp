#include "sim/bottleneck.h"

#include <algorithm>

namespace tandem::sim {

std::string_view Bottlenecks::of(TaskId id) {
  const Task& task = dag_.tasks[id];
  if (is_communication(task.op)) {
    const std::optional<Tier> tier = tier_of(task);
    return tier ? name_of(*tier) : "latency";
  }
  const Roofline roofline = kernels_.roofline_of(id);
  const OpCost cost = cost_of(dag_, id);
  const Seconds computing = roofline.computing(cost), moving = roofline.moving(cost);
  if (std::max(computing, moving) < roofline.launch || std::max(computing, moving) == 0) return "launch";
  return computing >= moving ? "arithmetic" : "memory";
}

std::optional<Tier> Bottlenecks::tier_of(const Task& task) {
  const CollectiveCost& cost = collectives_.of(task);
  const Narrowest& link = narrowest(dag_.groups[task.group].communicator, cost.paths);
  if (link.rate == 0) return std::nullopt;
  const BytesPerSecond rate = cost.rate_limit > 0 ? std::min(link.rate, cost.rate_limit) : link.rate;
  const Seconds transfer = static_cast<double>(cost.bytes_per_channel) / rate;
  return cost.latency >= transfer ? std::nullopt : std::optional(link.tier);
}

const Bottlenecks::Narrowest& Bottlenecks::narrowest(CommunicatorId communicator, std::uint32_t path) {
  const auto [found, is_new] = narrowest_.try_emplace({communicator, path});
  if (!is_new) return found->second;
  for (const Crossing& crossing : dag_.communicators[communicator].layout.paths[path].crossings) {
    if (crossing.multiplicity == 0) continue;
    const Link& link = dag_.links[crossing.link];
    const BytesPerSecond rate = link.capacity / crossing.multiplicity;
    if (found->second.rate == 0 || rate < found->second.rate) found->second = {link.tier, rate};
  }
  return found->second;
}

}  // namespace tandem::sim
