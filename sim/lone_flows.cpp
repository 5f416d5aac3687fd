#include "sim/lone_flows.h"

#include <algorithm>

namespace tandem::sim {

bool LoneFlows::begin(const Flow& flow, Seconds alone, Seconds now) {
  met_.clear();
  bool is_alone = true;
  for (const Crossing& crossing : flow.crossings) {
    if (crossing.multiplicity == 0) continue;
    OnLink& link = links_[crossing.link];
    if (link.lone_lane != no_id) is_alone &= !meet(link.lone_lane, now);
    is_alone &= link.in_network == 0;
  }
  Running& running = lanes_[flow.lane];
  running = {.flow = flow, .moves = now + flow.latency, .ends = now + alone, .is_alone = is_alone};
  enter_links(running);
  return is_alone;
}

/// Returns whether a lone flow is still running, and moves it into the network if so.
bool LoneFlows::meet(std::uint32_t lane, Seconds now) {
  Running& running = lanes_[lane];
  const Running before = running;
  leave(running);
  if (before.ends <= now) return false;
  running = before;
  running.is_alone = false;
  enter_links(running);
  Flow& rest = met_.emplace_back(before.flow);
  rest.latency = std::max(0.0, before.moves - now);
  if (before.moves < now) rest.bytes *= (before.ends - now) / (before.ends - before.moves);
  return true;
}

void LoneFlows::enter_links(const Running& running) {
  for (const Crossing& crossing : running.flow.crossings) {
    if (crossing.multiplicity == 0) continue;
    OnLink& link = links_[crossing.link];
    running.is_alone ? static_cast<void>(link.lone_lane = running.flow.lane) : static_cast<void>(++link.in_network);
  }
}

void LoneFlows::leave(Running& running) {
  for (const Crossing& crossing : running.flow.crossings) {
    if (crossing.multiplicity == 0) continue;
    OnLink& link = links_[crossing.link];
    running.is_alone ? static_cast<void>(link.lone_lane = no_id) : static_cast<void>(--link.in_network);
  }
  running = {};
}

}  // namespace tandem::sim
