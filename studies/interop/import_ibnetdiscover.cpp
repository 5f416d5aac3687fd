#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "runtime/base/host_list.h"
#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "studies/interop/cluster_graph.h"
#include "studies/interop/cluster_text.h"
#include "studies/interop/ibnetdiscover.h"

namespace tandem::studies {
namespace {

/// An adapter with the host that its description names.
struct NamedAdapter {
  const IbFabric::Node* node = nullptr;
  std::string host, adapter;
};

/// Reads descriptions as rdma-ndd writes them, "HOST mlx5_0", "HOST HCA-1" and their kind. What no such name ends, such as a
/// model's name or the node that a switch has for SHARP, is no host's.
std::optional<NamedAdapter> named_adapter(const IbFabric::Node& node) {
  static const std::regex form(R"rx(^'?([A-Za-z0-9][A-Za-z0-9_.-]*)'?\s+)rx"
                               R"rx(((?:mlx|mthca|hfi|qib|ibp|ibs|rocep|irdma|cxgb|bnxt_re|efa)[A-Za-z0-9]*(?:_[A-Za-z0-9]+)*|)rx"
                               R"rx(HCA-?\d+|hca-?\d+|ib\d+|[A-Za-z]+\d+_\d+)'?(?:\s.*)?$)rx");
  std::smatch match;
  if (!std::regex_match(node.description, match, form)) return std::nullopt;
  return NamedAdapter{&node, match[1].str(), match[2].str()};
}

class IbGraph {
 public:
  IbGraph(const IbFabric& fabric, const std::string& file, ImportResult& result) : fabric_(fabric), file_(file), result_(result) {
    for (const IbFabric::Node& node : fabric.nodes) nodes_[node.id] = &node;
  }

  ClusterGraph graph() && {
    add_switches();
    add_hosts();
    add_cables();
    return std::move(graph_);
  }

 private:
  const IbFabric& fabric_;
  const std::string& file_;
  ImportResult& result_;
  ClusterGraph graph_;
  std::map<std::string, const IbFabric::Node*> nodes_;
  std::map<std::string, std::size_t> switches_;

  void add_switches() {
    std::set<std::string> names;
    for (const IbFabric::Node& node : fabric_.nodes) {
      if (node.kind != IbFabric::Kind::node_switch) continue;
      std::string name = node.description.empty() || names.contains(node.description) ? node.id : node.description;
      constexpr std::size_t longest = 100;
      if (name.size() > longest || names.contains(name)) name = node.id;
      names.insert(name);
      switches_[node.id] = graph_.switches.size();
      graph_.switches.push_back(std::move(name));
    }
    if (graph_.switches.empty())
      throw InputError({.file = file_}, "lists no switch, expected a fabric: ibnetdiscover run on a host that is on it");
  }

  /// The ports of an adapter that are on switches, in the order of their numbers.
  void add_nics(const IbFabric::Node& adapter, std::vector<ClusterGraph::Nic>& nics) const {
    for (const auto& [number, port] : adapter.ports) {
      const auto on = switches_.find(port.to);
      if (on == switches_.end()) continue;
      // The switch's end is the one that says the rate; an adapter's is printed as 0 by old versions.
      const auto back = nodes_.at(port.to)->ports.find(port.to_number);
      const double there = back == nodes_.at(port.to)->ports.end() ? 0 : back->second.gbps;
      nics.push_back({.on = on->second, .gbps = there > 0 ? there : port.gbps});
    }
  }

  void add_hosts() {
    std::map<std::string, std::vector<NamedAdapter>> by_host;
    std::vector<const IbFabric::Node*> nameless;
    for (const IbFabric::Node& node : fabric_.nodes) {
      if (node.kind != IbFabric::Kind::adapter) continue;
      if (std::optional<NamedAdapter> named = named_adapter(node)) {
        by_host[named->host].push_back(std::move(*named));
      } else {
        nameless.push_back(&node);
      }
    }
    for (auto& [host, adapters] : by_host) {
      std::ranges::stable_sort(adapters, comes_before, &NamedAdapter::adapter);
      const auto twice = std::ranges::adjacent_find(adapters, {}, &NamedAdapter::adapter);
      if (twice != adapters.end()) {  // several hosts of one name, as "localhost"
        for (const NamedAdapter& adapter : adapters) nameless.push_back(adapter.node);
        continue;
      }
      ClusterGraph::Host& one = graph_.hosts.emplace_back();
      one.name = host;
      for (const NamedAdapter& adapter : adapters) add_nics(*adapter.node, one.nics);
    }
    if (!graph_.hosts.empty()) {
      if (!nameless.empty())
        result_.warnings.push_back(fmt::format(
            "{} adapters are left out, whose descriptions name no host (\"HOST mlx5_0\", \"HOST HCA-1\")", nameless.size()));
      return;
    }
    std::map<std::string, int> described;
    for (const IbFabric::Node* adapter : nameless) ++described[adapter->description];
    for (const IbFabric::Node* adapter : nameless) {
      if (adapter->description.find("Aggregation Node") != std::string::npos) continue;  // a switch's own, for SHARP
      ClusterGraph::Host& one = graph_.hosts.emplace_back();
      // A site may have one name for each adapter, which is its host's.
      const bool names_it = described[adapter->description] == 1 && !adapter->description.empty() &&
                            adapter->description.find_first_of(" \t[],") == std::string::npos;
      one.name = names_it ? adapter->description : adapter->id;
      add_nics(*adapter, one.nics);
    }
    if (graph_.hosts.empty()) throw InputError({.file = file_}, "lists no adapter of a host, expected a fabric with hosts on it");
    result_.assumed.emplace_back(
        "each adapter is a host of its own, named by its description or GUID, as no description names a host and an adapter");
  }

  void add_cables() {
    bool differ = false;
    for (const IbFabric::Node& node : fabric_.nodes) {
      if (node.kind != IbFabric::Kind::node_switch) continue;
      for (const auto& [number, port] : node.ports) {
        const auto to = switches_.find(port.to);
        const std::size_t from = switches_.at(node.id);
        if (to == switches_.end() || std::pair(from, number) > std::pair(to->second, port.to_number) || from == to->second)
          continue;
        const double back = nodes_.at(port.to)->ports.at(port.to_number).gbps;
        differ = differ || (back > 0 && port.gbps > 0 && back != port.gbps);
        graph_.cables.push_back({from, to->second, 1, std::max(back, port.gbps)});
      }
    }
    if (differ) result_.warnings.emplace_back("the ends of some cables differ in rate; the faster end counts, as both run alike");
  }
};

}  // namespace

/// Reads what ibnetdiscover prints into a cluster: its switches with the rates of their links, and hosts by the names of their
/// adapters.
ImportResult import_ibnetdiscover(const ImportSource& /*source*/, const ImportRequest& request) {
  const std::string& file = request.paths.front();
  const std::string text = read_large_text(file, "what ibnetdiscover prints");
  const IbFabric fabric = parse_ibnetdiscover(text, file);
  if (fabric.nodes.empty()) throw InputError({.file = file}, "lists no node, expected what ibnetdiscover prints");
  ImportResult result;
  ClusterGraph graph = IbGraph(fabric, file, result).graph();
  result.out = cluster_of_graph(std::move(graph), file, request, result);
  return result;
}

}  // namespace tandem::studies
