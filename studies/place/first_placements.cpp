#include "studies/place/first_placements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace tandem::studies {
namespace {

using Blocks = std::vector<std::uint32_t>;

std::vector<std::uint32_t> by_leaf(std::vector<std::uint32_t> free, const NodeSites& sites) {
  std::ranges::sort(free, {}, [&](std::uint32_t node) { return std::tuple(sites.pod[node], sites.leaf[node], node); });
  return free;
}

/// Bytes between blocks.
class Exchange {
 public:
  Exchange(const StepTraffic& traffic, std::size_t blocks, std::int64_t gpus_per_node) : with_(blocks) {
    for (const StepTraffic::OfCommunicator& carried : traffic.communicators) {
      double bytes = 0;
      for (const double of_path : carried.bytes) bytes += of_path;
      Blocks over;
      for (const std::uint32_t rank : carried.members) {
        const auto block = static_cast<std::uint32_t>(rank / gpus_per_node);
        if (std::ranges::find(over, block) == over.end()) over.push_back(block);
      }
      constexpr Slot exchanges[] = {Slot::expert,        Slot::context,       Slot::context_exchange,
                                    Slot::context_heads, Slot::data_exchange, Slot::expert_data_exchange};
      const bool all_to_all = std::ranges::find(exchanges, carried.slot) != std::end(exchanges);
      all_to_all ? add_all(over, bytes) : add_ring(over, bytes);
    }
  }

  const std::map<std::uint32_t, double>& with(std::uint32_t block) const { return with_[block]; }
  double between(std::uint32_t a, std::uint32_t b) const {
    const auto found = with_[a].find(b);
    return found == with_[a].end() ? 0 : found->second;
  }

 private:
  std::vector<std::map<std::uint32_t, double>> with_;

  void add(std::uint32_t a, std::uint32_t b, double bytes) { with_[a][b] += bytes, with_[b][a] += bytes; }
  void add_ring(const Blocks& over, double bytes) {
    for (std::size_t i = 0; i < over.size(); ++i) {
      if (over.size() > 2 || i == 0) add(over[i], over[(i + 1) % over.size()], bytes);
    }
  }
  void add_all(const Blocks& over, double bytes) {
    for (std::size_t i = 0; i < over.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) add(over[i], over[j], bytes / static_cast<double>(over.size() - 1));
    }
  }
};

/// Splits `part` off `blocks`, which keeps the rest.
class Split {
 public:
  Split(const Exchange& exchange, Blocks& blocks, std::size_t size) : exchange_(exchange) {
    for (const std::uint32_t block : blocks) side_[block] = false;
    grow(size);
    refine();
    blocks.clear();
    for (const auto& [block, inside] : side_) (inside ? part_ : blocks).push_back(block);
  }

  Blocks part() && { return std::move(part_); }

 private:
  const Exchange& exchange_;
  std::map<std::uint32_t, bool> side_;  ///< by block: whether it is in the part
  Blocks part_;

  void grow(std::size_t size) {
    std::map<std::uint32_t, double> reach;  // of blocks outside: what they exchange with the part
    for (const auto& [block, inside] : side_) reach[block] = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto next = std::ranges::max_element(reach, {}, [](const auto& entry) { return entry.second; });
      const std::uint32_t block = next->first;
      reach.erase(next);
      side_[block] = true;
      for (const auto& [other, bytes] : exchange_.with(block)) {
        if (const auto outside = reach.find(other); outside != reach.end()) outside->second += bytes;
      }
    }
  }

  /// Returns the bytes that changing sides would take off what the sides exchange.
  double gain(std::uint32_t block) const {
    double gain = 0;
    for (const auto& [other, bytes] : exchange_.with(block)) {
      const auto found = side_.find(other);
      if (found != side_.end()) gain += found->second == side_.at(block) ? -bytes : bytes;
    }
    return gain;
  }

  void refine() {
    constexpr std::size_t looked_at = 8;  // of either side, those with most to gain
    for (std::size_t swaps = 0; swaps < 2 * side_.size(); ++swaps) {
      std::array<std::vector<std::pair<double, std::uint32_t>>, 2> gains;
      for (const auto& [block, inside] : side_) gains[inside ? 1 : 0].emplace_back(-gain(block), block);
      for (auto& of_side : gains) {
        const std::size_t kept = std::min(looked_at, of_side.size());
        std::ranges::partial_sort(of_side, of_side.begin() + static_cast<std::ptrdiff_t>(kept));
        of_side.resize(kept);
      }
      double best = 0, scale = 0;
      std::pair<std::uint32_t, std::uint32_t> pair;
      for (const auto& [less_a, a] : gains[0]) {
        for (const auto& [less_b, b] : gains[1]) {
          const double saved = -less_a - less_b - 2 * exchange_.between(a, b);
          scale = std::max({scale, std::abs(less_a), std::abs(less_b)});
          if (saved > best) best = saved, pair = {a, b};
        }
      }
      if (best <= 1e-9 * scale) return;
      std::swap(side_[pair.first], side_[pair.second]);
    }
  }
};

/// Gives each block of `blocks` one of the groups of nodes, as many blocks to a group as it has nodes at most.
std::vector<std::pair<Blocks, std::vector<std::uint32_t>>> share_out(Blocks blocks, const std::vector<std::uint32_t>& nodes,
                                                                     const std::vector<std::uint32_t>& group_of,
                                                                     const Exchange& exchange) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> groups;
  for (const std::uint32_t node : nodes) groups[group_of[node]].push_back(node);
  std::vector<std::pair<Blocks, std::vector<std::uint32_t>>> shares;
  while (!blocks.empty()) {
    auto chosen = groups.begin();
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      const bool holds_all = group->second.size() >= blocks.size(), held_all = chosen->second.size() >= blocks.size();
      const bool is_larger = group->second.size() > chosen->second.size();
      if (holds_all ? !held_all || group->second.size() < chosen->second.size() : !held_all && is_larger) chosen = group;
    }
    Blocks part;
    if (chosen->second.size() >= blocks.size())
      part.swap(blocks);
    else
      part = Split(exchange, blocks, chosen->second.size()).part();
    shares.emplace_back(std::move(part), std::move(chosen->second));
    groups.erase(chosen);
  }
  return shares;
}

}  // namespace

NodeOfBlock sorted_by_leaf(const std::vector<std::uint32_t>& free, std::size_t blocks, const NodeSites& sites) {
  NodeOfBlock nodes = by_leaf(free, sites);
  nodes.resize(blocks);
  return nodes;
}

NodeOfBlock bisected(const std::vector<std::uint32_t>& free, std::size_t blocks, const NodeSites& sites,
                     const StepTraffic& traffic, std::int64_t gpus_per_node) {
  const Exchange exchange(traffic, blocks, gpus_per_node);
  Blocks all;
  for (std::uint32_t block = 0; block < blocks; ++block) all.push_back(block);
  NodeOfBlock nodes(blocks);
  for (auto& [in_pod, pod] : share_out(std::move(all), by_leaf(free, sites), sites.pod, exchange)) {
    for (const auto& [on_leaf, leaf] : share_out(std::move(in_pod), pod, sites.leaf, exchange)) {
      for (std::size_t i = 0; i < on_leaf.size(); ++i) nodes[on_leaf[i]] = leaf[i];
    }
  }
  return nodes;
}

NodeOfBlock in_order(NodeOfBlock nodes, const std::vector<std::uint32_t>& free, const NodeSites& sites) {
  if (!sites.alike) return nodes;
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_leaf;
  for (const std::uint32_t node : by_leaf(free, sites)) of_leaf[sites.leaf[node]].push_back(node);
  std::map<std::uint32_t, std::size_t> taken;
  for (std::uint32_t& node : nodes) {
    const std::uint32_t leaf = sites.leaf[node];
    node = of_leaf.at(leaf)[taken[leaf]++];
  }
  return nodes;
}

}  // namespace tandem::studies
