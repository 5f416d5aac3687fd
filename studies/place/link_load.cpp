#include "studies/place/link_load.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/mesh/communicators.h"

namespace tandem::studies {
namespace {

bool is_between_nodes(Tier tier) { return tier == Tier::nic || tier == Tier::leaf || tier == Tier::spine; }

}  // namespace

LinkLoad::LinkLoad(const Scenario& scenario, const StepTraffic& traffic, const NodeOfBlock& nodes)
    : scenario_(&scenario), traffic_(&traffic), cluster_(scenario.cluster), touching_(nodes.size()) {
  first_ = static_cast<LinkId>(cluster_.link_count());
  for (LinkId id = 0; id < cluster_.link_count(); ++id) {
    const Link link = cluster_.unnamed_link(id);
    tier_.push_back(link.tier);
    capacity_.push_back(is_between_nodes(link.tier) ? link.capacity : 0);
    if (is_between_nodes(link.tier)) first_ = std::min(first_, id);
  }
  for (std::uint32_t c = 0; c < traffic.communicators.size(); ++c) {
    for (const std::uint32_t rank : traffic.communicators[c].members) {
      auto& of_block = touching_[static_cast<std::size_t>(rank / scenario.cluster.gpus_per_node)];
      if (of_block.empty() || of_block.back() != c) of_block.push_back(c);
    }
  }
  is_affected_.assign(traffic.communicators.size(), 0);
  place(nodes);
}

std::vector<LinkLoad::Share> LinkLoad::lay(std::uint32_t communicator) const {
  const StepTraffic::OfCommunicator& carried = traffic_->communicators[communicator];
  const std::int64_t per_node = scenario_->cluster.gpus_per_node;
  std::vector<std::uint32_t> gpus;
  for (const std::uint32_t rank : carried.members)
    gpus.push_back(static_cast<std::uint32_t>(nodes_[static_cast<std::size_t>(rank / per_node)] * per_node + rank % per_node));
  const Layout layout = lay_communicator(*scenario_, cluster_, carried.slot, gpus);
  std::vector<Share> shares;
  for (std::size_t path = 0; path < carried.bytes.size(); ++path) {
    if (carried.bytes[path] == 0) continue;
    const double of_channel = carried.bytes[path] / layout.paths[path].channels;
    for (const Crossing& crossing : layout.paths[path].crossings) {
      if (capacity_[crossing.link] > 0)
        shares.push_back({crossing.link, of_channel * crossing.multiplicity / capacity_[crossing.link]});
    }
  }
  return shares;
}

void LinkLoad::place(const NodeOfBlock& nodes) {
  nodes_ = nodes;
  time_.assign(cluster_.link_count(), 0);
  shares_.clear();
  times_before_.clear(), shares_before_.clear(), nodes_before_.clear();
  for (std::uint32_t c = 0; c < traffic_->communicators.size(); ++c) {
    shares_.push_back(lay(c));
    for (const Share& share : shares_.back()) time_[share.link] += share.time;
  }
}

void LinkLoad::move(std::span<const Move> moves) {
  times_before_.clear(), shares_before_.clear(), nodes_before_.clear();
  std::vector<std::uint32_t> affected;
  for (const auto& [block, node] : moves) {
    nodes_before_.emplace_back(block, nodes_[block]);
    nodes_[block] = node;
    for (const std::uint32_t c : touching_[block]) {
      if (std::exchange(is_affected_[c], 1) == 0) affected.push_back(c);
    }
  }
  const auto change = [&](const Share& share, double sign) {
    times_before_.emplace_back(share.link, time_[share.link]);
    time_[share.link] += sign * share.time;
  };
  for (const std::uint32_t c : affected) {
    is_affected_[c] = 0;
    for (const Share& share : shares_[c]) change(share, -1);
    shares_before_.emplace_back(c, std::exchange(shares_[c], lay(c)));
    for (const Share& share : shares_[c]) change(share, +1);
  }
}

void LinkLoad::take_back() {
  for (auto change = times_before_.rbegin(); change != times_before_.rend(); ++change) time_[change->first] = change->second;
  for (auto& [c, shares] : shares_before_) shares_[c] = std::move(shares);
  for (auto moved = nodes_before_.rbegin(); moved != nodes_before_.rend(); ++moved) nodes_[moved->first] = moved->second;
  times_before_.clear(), shares_before_.clear(), nodes_before_.clear();
}

LinkTimes LinkLoad::load() const {
  LinkTimes load;
  double squares = 0;
  for (LinkId id = first_; id < time_.size(); ++id) {
    load.slowest = std::max(load.slowest, time_[id]);
    squares += time_[id] * time_[id];
  }
  if (first_ < time_.size()) load.spread = std::sqrt(squares / static_cast<double>(time_.size() - first_));
  return load;
}

std::array<TierLoad, 3> LinkLoad::by_tier() const {
  std::array<TierLoad, 3> tiers{{{.tier = Tier::nic}, {.tier = Tier::leaf}, {.tier = Tier::spine}}};
  for (LinkId id = first_; id < time_.size(); ++id) {
    TierLoad& tier = tiers[static_cast<std::size_t>(tier_[id]) - static_cast<std::size_t>(Tier::nic)];
    ++tier.links;
    tier.bytes += bytes_over(id);
    tier.slowest = std::max(tier.slowest, time_[id]);
  }
  return tiers;
}

}  // namespace tandem::studies
