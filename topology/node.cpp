#include "topology/node.h"

#include <algorithm>
#include <bit>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/visitors.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "topology/fabric.h"

namespace tandem::topology {
namespace {

using Edge = boost::graph_traits<Node::Graph>::edge_descriptor;
using Numbers = std::vector<std::size_t>;  ///< of GPUs or NICs

constexpr double gbit_per_gigabyte = 8;

struct NoNvlink {
  const Node::Graph* graph = nullptr;
  bool operator()(const Edge& edge) const { return (*graph)[edge].kind != Node::Wire::Kind::nvlink; }
};

/// What lies between a GPU and a NIC, the nearest first: NCCL's types of paths.
enum class Between : std::uint8_t {
  one_switch,
  switches,
  cpu,
  sockets,
  nothing  ///< no way leads there
};

/// The way from a GPU to a NIC.
struct Way {
  Between between = Between::nothing;
  double GBps = std::numeric_limits<double>::infinity();
  std::vector<Edge> wires = {};
};

/// Returns the way to each NIC of the node. A NIC that cannot be reached is infinitely far.
std::vector<Way> ways_from(std::uint32_t gpu, const Node& node) {
  const boost::filtered_graph<Node::Graph, NoNvlink> graph(node.graph, NoNvlink{&node.graph});
  std::vector<Edge> from(boost::num_vertices(node.graph));
  std::vector<std::uint32_t> before(from.size());
  for (std::uint32_t v = 0; v < before.size(); ++v) before[v] = v;
  boost::breadth_first_search(graph, gpu,
                              boost::visitor(boost::make_bfs_visitor(
                                  std::make_pair(boost::record_predecessors(before.data(), boost::on_tree_edge()),
                                                 boost::record_edge_predecessors(from.data(), boost::on_tree_edge())))));
  using Kind = Node::Part::Kind;
  std::vector<Way> ways;
  for (const std::uint32_t nic : node.nics) {
    std::size_t cpus = 0, bridges = 0;
    Way& way = ways.emplace_back();
    if (before[nic] == nic) continue;
    for (std::uint32_t at = nic; at != gpu; at = before[at]) {
      way.wires.push_back(from[at]);
      way.GBps = std::min(way.GBps, node.graph[from[at]].GBps);
      cpus += node.graph[before[at]].kind == Kind::cpu ? 1 : 0;
      bridges += node.graph[before[at]].kind == Kind::pcie ? 1 : 0;
    }
    constexpr std::size_t card_and_switch = 2;
    way.between = cpus > 1    ? Between::sockets
                  : cpus == 1 ? Between::cpu
                              : (bridges > card_and_switch ? Between::switches : Between::one_switch);
  }
  return ways;
}

/// Returns the nearest NICs.
Numbers nearest(const std::vector<Way>& ways) {
  const auto distance = [](const Way& way) { return std::tuple(way.between, -way.GBps); };
  Numbers found;
  for (std::size_t nic = 0; nic < ways.size(); ++nic) {
    if (ways[nic].wires.empty()) continue;
    if (!found.empty() && distance(ways[nic]) < distance(ways[found.front()])) found.clear();
    if (found.empty() || distance(ways[nic]) == distance(ways[found.front()])) found.push_back(nic);
  }
  return found;
}

std::size_t mirrored(std::size_t number, std::size_t power_of_two) {
  std::size_t image = 0;
  for (std::size_t bit = 1; bit < power_of_two; bit *= 2) image = 2 * image + (number & bit ? 1 : 0);
  return image;
}

/// Returns which of the NICs nearest to all `sharers` GPUs the `turn`-th of these takes.
Numbers part_of(const Numbers& nics, std::size_t turn, std::size_t sharers) {
  if (nics.size() <= sharers)
    return {nics[(std::has_single_bit(nics.size()) ? mirrored(turn, nics.size()) : turn) % nics.size()]};
  if (nics.size() % sharers != 0)
    throw TopologyError(std::to_string(nics.size()) + " NICs are nearest to " + std::to_string(sharers) +
                        " GPUs alike, expected as many for each");
  const std::size_t each = nics.size() / sharers;
  const auto first = nics.begin() + static_cast<std::ptrdiff_t>(turn * each);
  return {first, first + static_cast<std::ptrdiff_t>(each)};
}

/// Returns, by GPU, the NICs that it takes of those nearest to it.
std::vector<Numbers> share_out(const std::vector<Numbers>& nearest_of_gpu) {
  std::vector<Numbers> shared;
  for (std::size_t gpu = 0; gpu < nearest_of_gpu.size(); ++gpu) {
    const Numbers& nics = nearest_of_gpu[gpu];
    const auto place = nearest_of_gpu.begin() + static_cast<std::ptrdiff_t>(gpu);
    const auto turn = static_cast<std::size_t>(std::count(nearest_of_gpu.begin(), place, nics));
    const auto sharers = static_cast<std::size_t>(std::ranges::count(nearest_of_gpu, nics));
    shared.push_back(part_of(nics, turn, sharers));
  }
  return shared;
}

double gbps(const Node& node, std::size_t nic) {
  for (const Edge edge : boost::make_iterator_range(boost::out_edges(node.nics[nic], node.graph))) {
    if (node.graph[edge].kind == Node::Wire::Kind::line) return node.graph[edge].GBps * gbit_per_gigabyte;
  }
  return 0;
}

double nvlink_GBps(const Node& node, std::uint32_t gpu) {
  double sum = 0;
  for (const Edge edge : boost::make_iterator_range(boost::out_edges(gpu, node.graph))) {
    if (node.graph[edge].kind == Node::Wire::Kind::nvlink) sum += node.graph[edge].GBps;
  }
  return sum;
}

/// Returns the wires that all of a GPU's ways to its NICs have in common, from the GPU on.
std::vector<Edge> common_wires(const std::vector<Way>& ways, const Numbers& nics) {
  std::vector<Edge> wires(ways[nics.front()].wires.rbegin(), ways[nics.front()].wires.rend());
  for (const std::size_t nic : nics) {
    std::erase_if(wires, [&](const Edge& wire) { return std::ranges::count(ways[nic].wires, wire) == 0; });
  }
  return wires;
}

void add_ports(const Node& node, const std::vector<Edge>& wires, std::size_t gpu, std::vector<PcieSpec::Port>& ports) {
  for (const Edge& wire : wires) {
    const Node::Wire& spec = node.graph[wire];
    if (spec.kind != Node::Wire::Kind::pcie && spec.kind != Node::Wire::Kind::socket) continue;
    auto port = std::ranges::find(ports, spec.name, &PcieSpec::Port::name);
    if (port == ports.end()) port = ports.insert(port, {.name = spec.name, .GBps = spec.GBps, .gpus = {}});
    port->gpus.push_back(static_cast<std::int64_t>(gpu));
  }
}

/// Returns, by GPU, its only NIC; nothing where each GPU has an equal run of several NICs, in the GPUs' order.
std::vector<std::int64_t> nic_of_gpu(const std::vector<Numbers>& shared) {
  const std::size_t each = shared.front().size();
  std::vector<std::int64_t> first;
  for (std::size_t gpu = 0; gpu < shared.size(); ++gpu) {
    first.push_back(static_cast<std::int64_t>(shared[gpu].front()));
    const bool in_order = each == 1 || shared[gpu].front() == gpu * each;
    if (shared[gpu].size() != each || !in_order)
      throw TopologyError("GPU " + std::to_string(gpu) + " uses " + std::to_string(shared[gpu].size()) + " NICs from number " +
                          std::to_string(shared[gpu].front()) +
                          " on, expected one NIC for each GPU, or equally many numbered in the GPUs' order");
  }
  return each == 1 ? first : std::vector<std::int64_t>{};
}

}  // namespace

NodeNetwork network_of(const Node& node) {
  NodeNetwork network{.gpus = static_cast<std::int64_t>(node.gpus.size())};
  network.nvlink_GBps = nvlink_GBps(node, node.gpus.front());
  network.is_mesh = node.is_mesh;
  if (node.nics.empty()) return network;

  std::vector<std::vector<Way>> ways;
  std::vector<Numbers> near;
  for (const std::uint32_t gpu : node.gpus) {
    ways.push_back(ways_from(gpu, node));
    near.push_back(nearest(ways.back()));
    if (near.back().empty()) throw TopologyError("no way leads from " + node.graph[gpu].name + " to a NIC");
  }
  std::vector<Numbers> shared = share_out(near);
  std::set<std::size_t> used;
  for (std::size_t gpu = 0; gpu < shared.size(); ++gpu) {
    used.insert(shared[gpu].begin(), shared[gpu].end());
    add_ports(node, common_wires(ways[gpu], shared[gpu]), gpu, network.pcie.ports);
  }
  network.nics = static_cast<std::int64_t>(used.size());
  network.nic_gbps = gbps(node, *used.begin());
  for (const std::size_t nic : used) {
    if (gbps(node, nic) != network.nic_gbps)
      throw TopologyError("the GPUs' NICs differ in speed: " + node.graph[node.nics[*used.begin()]].name + " and " +
                          node.graph[node.nics[nic]].name + ", expected one speed");
  }
  for (Numbers& nics : shared) {
    for (std::size_t& nic : nics) nic = static_cast<std::size_t>(std::distance(used.begin(), used.find(nic)));
  }
  if (std::isinf(network.nic_gbps)) network.nic_gbps = 0;
  network.pcie.nic_of_gpu = nic_of_gpu(shared);
  return network;
}

}  // namespace tandem::topology
