#include "studies/interop/cluster_graph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "runtime/base/host_list.h"
#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "studies/interop/cluster_text.h"

namespace tandem::studies {
namespace {

constexpr std::size_t no_level = std::numeric_limits<std::size_t>::max();

/// Removes what cannot take part, ranks the switches and joins those that serve the same.
class GraphReducer {
 public:
  GraphReducer(ClusterGraph graph, std::string file, ImportResult& result)
      : graph_(std::move(graph)), file_(std::move(file)), result_(result) {}

  ClusterGraph reduce() && {
    keep_equal_hosts();
    std::ranges::stable_sort(graph_.hosts, comes_before, &ClusterGraph::Host::name);
    mark_leaves();
    connect();
    mark_used();
    find_levels();
    join();
    return std::move(graph_);
  }

 private:
  ClusterGraph graph_;
  std::string file_;
  ImportResult& result_;
  std::vector<bool> is_leaf_, is_used_;
  std::vector<std::vector<std::size_t>> neighbours_;
  std::vector<std::size_t> level_;

  /// Keeps hosts with at least n NICs, and n of these, for the n by which most NICs take part; of two such, the larger.
  void keep_equal_hosts() {
    std::map<std::size_t, std::size_t> hosts_with;
    for (const ClusterGraph::Host& host : graph_.hosts) ++hosts_with[host.nics.size()];
    std::size_t best = 0, most = 0, at_least = 0;
    for (auto with = hosts_with.rbegin(); with != hosts_with.rend() && with->first > 0; ++with) {
      at_least += with->second;
      if (with->first * at_least > most) {
        most = with->first * at_least;
        best = with->first;
      }
    }
    if (best == 0) throw InputError({.file = file_}, "connects no host to a switch, expected a fabric with hosts on it");
    std::vector<std::string> without;
    std::size_t unused = 0;
    for (const ClusterGraph::Host& host : graph_.hosts) {
      if (host.nics.size() < best) without.push_back(host.name);
      if (host.nics.size() > best) unused += host.nics.size() - best;
    }
    std::ranges::sort(without, comes_before);
    if (!without.empty())
      result_.warnings.push_back(
          fmt::format("{} of {} hosts are left out, which have fewer NICs on the fabric than the {} of the others: {}",
                      without.size(), graph_.hosts.size(), best, shown(without)));
    if (unused > 0)
      result_.warnings.push_back(fmt::format("{} NICs are left out, of hosts that have more than {}", unused, best));
    std::erase_if(graph_.hosts, [&](const ClusterGraph::Host& host) { return host.nics.size() < best; });
    for (ClusterGraph::Host& host : graph_.hosts) host.nics.resize(best);
  }

  static std::string shown(const std::vector<std::string>& names) {
    constexpr std::size_t most = 16;  // a sentence stays readable
    const std::span few(names.data(), std::min(names.size(), most));
    return host_list_of(few) + (names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
  }

  void mark_leaves() {
    is_leaf_.assign(graph_.switches.size(), false);
    for (const ClusterGraph::Host& host : graph_.hosts)
      for (const ClusterGraph::Nic& nic : host.nics) is_leaf_[nic.on] = true;
  }

  void connect() {
    neighbours_.assign(graph_.switches.size(), {});
    for (const ClusterGraph::Cable& cable : graph_.cables) {
      neighbours_[cable.one].push_back(cable.other);
      neighbours_[cable.other].push_back(cable.one);
    }
    for (std::vector<std::size_t>& of : neighbours_) {
      std::ranges::sort(of);
      of.erase(std::ranges::unique(of).begin(), of.end());
    }
  }

  /// Returns the switches in the order of their distance from those in `order`, which it fills up; `distance` by switch.
  void walk_outwards(std::vector<std::size_t>& order, std::vector<std::size_t>& distance) const {
    distance.assign(graph_.switches.size(), no_level);
    for (const std::size_t from : order) distance[from] = 0;
    for (std::size_t at = 0; at < order.size(); ++at) {
      for (const std::size_t next : neighbours_[order[at]]) {
        if (distance[next] != no_level) continue;
        distance[next] = distance[order[at]] + 1;
        order.push_back(next);
      }
    }
  }

  /// A switch is used if it lies on a shortest way between two leaves.
  void mark_used() {
    is_used_ = is_leaf_;
    std::vector<std::size_t> order, distance;
    std::vector<bool> leads_on;
    for (std::size_t leaf = 0; leaf < is_leaf_.size(); ++leaf) {
      if (!is_leaf_[leaf]) continue;
      order.assign(1, leaf);
      walk_outwards(order, distance);
      leads_on = is_leaf_;
      for (auto at = order.rbegin(); at != order.rend(); ++at) {
        for (const std::size_t next : neighbours_[*at])
          if (distance[next] == distance[*at] + 1 && leads_on[next]) leads_on[*at] = true;
        if (leads_on[*at]) is_used_[*at] = true;
      }
      for (std::size_t other = leaf + 1; other < is_leaf_.size(); ++other)
        if (is_leaf_[other] && distance[other] == no_level)
          throw InputError({.file = file_}, "is a fabric in parts: no way leads from switch " + excerpt(graph_.switches[leaf]) +
                                                " to " + excerpt(graph_.switches[other]) +
                                                ", and hosts hang on both; expected one fabric that joins all hosts");
    }
    const auto unused = std::ranges::count(is_used_, false);
    if (unused > 0)
      result_.warnings.push_back(fmt::format("{} of {} switches are left out, which lie on no shortest way between two hosts",
                                             unused, graph_.switches.size()));
  }

  void find_levels() {
    std::vector<std::size_t> order;
    if (!graph_.is_upward) {
      for (std::size_t leaf = 0; leaf < is_leaf_.size(); ++leaf)
        if (is_leaf_[leaf]) order.push_back(leaf);
      return walk_outwards(order, level_);
    }
    level_.assign(graph_.switches.size(), 0);
    for (std::size_t round = 0; round < graph_.switches.size(); ++round) {
      bool changed = false;
      for (const ClusterGraph::Cable& cable : graph_.cables) {
        changed = changed || level_[cable.other] <= level_[cable.one];
        level_[cable.other] = std::max(level_[cable.other], level_[cable.one] + 1);
      }
      if (!changed) return;
    }
    throw InputError({.file = file_}, "has switches that lead up in a circle, expected a tree");
  }

  /// Joins switches of a level that lead down to the same switches, from the lowest on.
  void join() {
    const std::size_t count = graph_.switches.size();
    std::vector<std::size_t> by_level(count), part_of(count);
    std::iota(by_level.begin(), by_level.end(), std::size_t{0});
    std::iota(part_of.begin(), part_of.end(), std::size_t{0});
    std::ranges::stable_sort(by_level, {}, [&](std::size_t s) { return level_[s]; });
    std::map<std::set<std::size_t>, std::size_t> serving;
    std::map<std::size_t, std::vector<std::string>> names;
    for (const std::size_t s : by_level) {
      if (!is_used_[s]) continue;
      std::set<std::size_t> below;
      bool has_peers = is_leaf_[s];
      for (const std::size_t n : neighbours_[s]) {
        if (is_used_[n] && level_[n] == level_[s]) has_peers = true;
        if (is_used_[n] && level_[n] < level_[s]) below.insert(part_of[n]);
      }
      if (!has_peers) part_of[s] = serving.emplace(std::move(below), s).first->second;
      names[part_of[s]].push_back(graph_.switches[s]);
    }
    rebuild(part_of, names);
  }

  void rebuild(const std::vector<std::size_t>& part_of, std::map<std::size_t, std::vector<std::string>>& names) {
    std::map<std::pair<std::size_t, std::size_t>, ClusterGraph::Cable> sums;  // gbps: of all together
    bool differ = false;
    for (const ClusterGraph::Cable& cable : graph_.cables) {
      if (!is_used_[cable.one] || !is_used_[cable.other]) continue;
      const bool upward =
          graph_.is_upward || std::pair(level_[cable.one], cable.one) < std::pair(level_[cable.other], cable.other);
      const std::size_t below = part_of[upward ? cable.one : cable.other], above = part_of[upward ? cable.other : cable.one];
      ClusterGraph::Cable& sum = sums.try_emplace({below, above}, ClusterGraph::Cable{below, above, 0, 0}).first->second;
      differ = differ || (sum.count > 0 && sum.gbps != static_cast<double>(sum.count) * cable.gbps);
      sum.count += cable.count;
      sum.gbps += static_cast<double>(cable.count) * cable.gbps;
    }
    if (differ) result_.assumed.emplace_back("cables between two switches that differ in rate have their mean");
    std::vector<std::size_t> place(graph_.switches.size());
    std::vector<std::string> joined;
    std::size_t most_joined = 1;
    for (auto& [part, of] : names) {
      place[part] = joined.size();
      most_joined = std::max(most_joined, of.size());
      joined.push_back(of.size() == 1 ? of.front() : fmt::format("{} and {} more", of.front(), of.size() - 1));
    }
    if (most_joined > 1)
      result_.assumed.push_back(
          fmt::format("switches that lead down to the same switches are one with all their cables, {} at most, as "
                      "routing spreads flows over them",
                      most_joined));
    graph_.switches = std::move(joined);
    graph_.cables.clear();
    for (auto& [ends, sum] : sums)
      graph_.cables.push_back({place[sum.one], place[sum.other], sum.count, sum.gbps / static_cast<double>(sum.count)});
    graph_.is_upward = true;
    for (ClusterGraph::Host& host : graph_.hosts)
      for (ClusterGraph::Nic& nic : host.nics) nic.on = place[part_of[nic.on]];
  }
};

/// Returns the rate of most NICs, and of those of unknown rate that of the preset.
double rate_of_nics(ClusterGraph& graph, const ClusterBase& base, ImportResult& result) {
  std::map<double, std::size_t> with_rate;
  for (const ClusterGraph::Host& host : graph.hosts)
    for (const ClusterGraph::Nic& nic : host.nics) ++with_rate[nic.gbps];
  const auto usual = std::ranges::max_element(with_rate, {}, [](const auto& rate) { return rate.second; });
  if (with_rate.size() > 1)
    result.warnings.push_back(fmt::format("NICs differ in rate; all are taken at the {} Gbit/s of most", usual->first));
  if (usual->first > 0) return usual->first;
  result.assumed.push_back(fmt::format("NICs of {} Gbit/s, as {} has", base.spec.nic_gbps, base.name));
  return base.spec.nic_gbps;
}

std::string switches_text(const ClusterGraph& graph) {
  std::vector<std::vector<std::int64_t>> nics(graph.switches.size());
  std::vector<std::string> up(graph.switches.size());
  std::int64_t number = 0;
  for (const ClusterGraph::Host& host : graph.hosts)
    for (const ClusterGraph::Nic& nic : host.nics) nics[nic.on].push_back(number++);
  constexpr std::int64_t most_cables = 4096;  // of an uplink, for readers of a fabric
  for (const ClusterGraph::Cable& cable : graph.cables) {
    const std::int64_t count = std::min(cable.count, most_cables);
    const double gbps = cable.gbps * static_cast<double>(cable.count) / static_cast<double>(count);
    up[cable.one] += fmt::format("{}{{to: {}, cables: {}, gbps: {:.6g}}}", up[cable.one].empty() ? "" : ", ",
                                 switch_text(graph.switches[cable.other]), count, gbps);
  }
  std::string text;
  for (std::size_t s = 0; s < graph.switches.size(); ++s) {
    text += "    - {name: " + switch_text(graph.switches[s]);
    if (!nics[s].empty()) text += ", nics: [" + ranges_text(nics[s]) + "]";
    if (!up[s].empty()) text += ", up: [" + up[s] + "]";
    text += "}\n";
  }
  return text;
}

/// A cluster of one node, without NICs.
std::string lone_node_text(const ClusterGraph& graph, const ClusterBase& base, const std::string& file,
                           const ImportRequest& request, ImportResult& result) {
  const std::int64_t gpus = gpus_of_host(base, 1, graph.gpus_per_host, file, request, result);
  std::string text = cluster_head(base, file) + fmt::format("gpus: {}\ngpus_per_node: {}\nnics_per_node: 0\n", gpus, gpus);
  if (graph.nvlink_GBps > 0) text += fmt::format("nvlink_GBps: {:.6g}\n", graph.nvlink_GBps);
  return text + hosts_text(std::vector{graph.hosts.front().name});
}

}  // namespace

std::string cluster_of_graph(ClusterGraph graph, const std::string& file, const ImportRequest& request, ImportResult& result) {
  const ClusterBase base = cluster_base(request, result);
  if (graph.hosts.size() == 1 && graph.switches.empty()) return lone_node_text(graph, base, file, request, result);
  ClusterGraph kept = GraphReducer(std::move(graph), file, result).reduce();
  const std::int64_t hosts = std::ssize(kept.hosts);
  const std::int64_t gpus = gpus_of_host(base, hosts, kept.gpus_per_host, file, request, result);
  const double gbps = rate_of_nics(kept, base, result);
  bool assumed_cables = false;
  for (ClusterGraph::Cable& cable : kept.cables) {
    if (cable.gbps > 0) continue;
    cable.gbps = gbps;
    assumed_cables = true;
  }
  if (assumed_cables) result.assumed.push_back(fmt::format("cables between switches of {} Gbit/s, as the NICs", gbps));

  std::string text = cluster_head(base, file);
  text += fmt::format("gpus: {}\ngpus_per_node: {}\n", hosts * gpus, gpus);
  if (kept.nvlink_GBps > 0) text += fmt::format("nvlink_GBps: {:.6g}\n", kept.nvlink_GBps);
  text += fmt::format("nics_per_node: {}\nnic_gbps: {:.6g}\n", kept.hosts.front().nics.size(), gbps);
  std::vector<std::string> names;
  for (const ClusterGraph::Host& host : kept.hosts) names.push_back(host.name);
  text += hosts_text(names);
  text += "fabric:\n  kind: custom\n  switches:\n" + switches_text(kept);
  return text;
}

}  // namespace tandem::studies
