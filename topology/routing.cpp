#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/visitors.hpp>

#include "topology/fabric_graph.h"
#include "topology/mix.h"

namespace tandem::topology {
std::vector<Fabric::Route> Fabric::routes(std::uint32_t from, std::uint32_t to) const {
  if (from == to) return {Route{}};
  if (is_tree_) return {tree_route(from, to)};
  const std::uint64_t key = std::uint64_t{from} << 32 | to;
  const std::scoped_lock lock(known_routes_->lock);
  const auto known = known_routes_->between.find(key);
  return known != known_routes_->between.end() ? known->second : known_routes_->between[key] = search(from, to);
}

Fabric::Route Fabric::tree_route(std::uint32_t from, std::uint32_t to) const {
  Route up, down;
  walk_tree(from, to, [&](const Step& step) { (step.up ? up : down).push_back(step); });
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

std::vector<Fabric::Route> Fabric::search(std::uint32_t from, std::uint32_t to) const {
  constexpr std::size_t most_routes = 64;
  std::vector<std::uint32_t> distance(switches_.size(), none);
  distance[to] = 0;
  boost::breadth_first_search(
      *graph_, to, boost::visitor(boost::make_bfs_visitor(boost::record_distances(distance.data(), boost::on_tree_edge()))));
  if (distance[from] == none) throw TopologyError("no way leads from " + switches_[from].name + " to " + switches_[to].name);

  std::vector<Route> found;
  Route route;
  const auto walk = [&](const auto& self, std::uint32_t at) -> void {
    if (at == to) {
      if (found.size() == most_routes)
        throw TopologyError("more than " + std::to_string(most_routes) + " shortest ways lead from " + switches_[from].name +
                            " to " + switches_[to].name +
                            "; expected switches that serve the same leaves as one, with several cables");
      found.push_back(route);
      return;
    }
    for (const auto edge : boost::make_iterator_range(boost::out_edges(at, *graph_))) {
      const auto next = static_cast<std::uint32_t>(boost::target(edge, *graph_));
      if (distance[next] + 1 != distance[at]) continue;
      const std::uint32_t bundle = (*graph_)[edge];
      route.push_back({bundle, bundles_[bundle].lower == at});
      self(self, next);
      route.pop_back();
    }
  };
  walk(walk, from);
  return found;
}

/// Returns one of the `count` cables from `first` on, chosen by the hash among those that are alive both in the bundle and in its
/// mirror image on the way down.
std::uint32_t Fabric::pick(std::uint32_t first, std::uint32_t count, std::uint32_t bundle, std::uint32_t mirror,
                           std::uint64_t hash) const {
  const std::uint32_t wanted = first + static_cast<std::uint32_t>(hash % count);
  if (!faults_.contains(bundle) && !faults_.contains(mirror)) return wanted;
  std::vector<std::uint32_t> alive;
  for (std::uint32_t cable = first; cable < first + count; ++cable) {
    if (!is_dead(bundle, cable) && !is_dead(mirror, cable)) alive.push_back(cable);
  }
  if (alive.empty())
    throw TopologyError("no cable is left that leads from " + bundles_[bundle].name + " to " + bundles_[mirror].name);
  return alive[hash % alive.size()];
}

std::vector<std::uint32_t> Fabric::cables_on(const Route& route, std::uint64_t hash) const {
  std::vector<std::uint32_t> cables(route.size(), none);
  std::uint32_t spine = 0, spines = 1;  // chosen so far: a pod's cables are sorted by the spine that they leave from
  for (std::size_t i = 0; i < route.size(); ++i) {
    if (cables[i] != none) continue;
    const Bundle& bundle = bundles_[route[i].bundle];
    const std::size_t opposite = route.size() - 1 - i;
    const Bundle& other = bundles_[route[opposite].bundle];
    const bool mirrored =
        opposite > i && route[i].up && !route[opposite].up && other.tier == bundle.tier && other.cables == bundle.cables;
    const bool by_spine = i > 0 && mirrored && bundle.cables % spines == 0;
    const std::uint32_t count = by_spine ? bundle.cables / spines : bundle.cables;
    cables[i] = pick(by_spine ? spine * count : 0, count, bundle.id, mirrored ? other.id : bundle.id, mix(hash + i));
    if (mirrored) cables[opposite] = cables[i];
    spine = cables[i];
    spines = bundle.cables;
  }
  return cables;
}

}  // namespace tandem::topology
