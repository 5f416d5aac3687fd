#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/host_list.h"
#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/usual_clusters.h"
#include "studies/interop/cluster_graph.h"
#include "studies/interop/cluster_text.h"
#include "studies/interop/slurm_topology.h"

namespace tandem::studies {
namespace {

constexpr std::string_view entry_option = "topology=";
constexpr std::int64_t gpus_of_a_tray = 4;  // of GB200 NVL72 and GB300 NVL72: NVIDIA's data sheets

std::string entry_of(const ImportRequest& request) {
  std::string entry;
  for (const std::string& one : request.overrides) {
    if (!one.starts_with(entry_option))
      throw InputError({"--set", 0, 0}, excerpt(one) + " is no field of a topology, expected topology=NAME, or none");
    entry = one.substr(entry_option.size());
  }
  return entry;
}

/// Keeps of every name its first place. Returns the names that stood in several.
std::vector<std::string> once(const std::vector<std::vector<std::string>*>& lists) {
  std::set<std::string> known;
  std::vector<std::string> several;
  for (std::vector<std::string>* list : lists)
    std::erase_if(*list, [&](const std::string& name) {
      if (known.insert(name).second) return false;
      several.push_back(name);
      return true;
    });
  return several;
}

void tell_several(const std::vector<std::string>& several, const std::string& where, ImportResult& result) {
  if (!several.empty())
    result.warnings.push_back(fmt::format("{} of {} counts where it stands first", host_list_of(several), where));
}

/// Hosts on switches, each with as many NICs as the preset has, and cables up for all NICs below.
ClusterGraph graph_of(SlurmTopology topology, const ClusterSpec& base, ImportResult& result) {
  std::vector<std::vector<std::string>*> lists;
  for (SlurmTopology::Switch& one : topology.switches) lists.push_back(&one.nodes);
  tell_several(once(lists), "several switches", result);

  ClusterGraph graph{.is_upward = true};
  const auto nics = static_cast<std::size_t>(std::max<std::int64_t>(1, base.nics_per_node));
  std::map<std::string_view, std::size_t> by_name;
  for (const SlurmTopology::Switch& one : topology.switches) {
    by_name[one.name] = graph.switches.size();
    for (const std::string& node : one.nodes)
      graph.hosts.push_back({node, std::vector<ClusterGraph::Nic>(nics, {.on = graph.switches.size()})});
    graph.switches.push_back(one.name);
  }
  const std::size_t count = graph.switches.size();
  std::vector<std::int64_t> below(count, -1), parents(count);
  const auto nics_below = [&](const auto& self, std::size_t at) -> std::int64_t {
    if (below[at] >= 0) return below[at];
    below[at] = std::ssize(topology.switches[at].nodes) * static_cast<std::int64_t>(nics);
    for (const std::string& child : topology.switches[at].children) below[at] += self(self, by_name.at(child));
    return below[at];
  };
  for (std::size_t s = 0; s < count; ++s) {
    nics_below(nics_below, s);
    for (const std::string& child : topology.switches[s].children) ++parents[by_name.at(child)];
  }
  const auto lead_up = [&](std::size_t from, std::size_t to, std::int64_t ways) {
    if (below[from] > 0) graph.cables.push_back({from, to, std::max<std::int64_t>(1, below[from] / ways), 0});
  };
  std::vector<std::size_t> roots;
  for (std::size_t s = 0; s < count; ++s) {
    if (parents[s] == 0 && below[s] > 0) roots.push_back(s);
    for (const std::string& child : topology.switches[s].children) lead_up(by_name.at(child), s, parents[by_name.at(child)]);
  }
  if (roots.size() > 1) {
    std::string top = "top";
    while (by_name.contains(top)) top += "_";
    graph.switches.push_back(top);
    for (const std::size_t root : roots) lead_up(root, count, 1);
    result.assumed.push_back(
        fmt::format("a switch {} above the {} that nothing in the file joins: {}", top, roots.size(),
                    graph.switches[roots.front()] + ", " + graph.switches[roots[1]] + (roots.size() > 2 ? ", .." : "")));
  }
  result.assumed.emplace_back("every switch passes up all that its NICs can send, as the file has no rates of links");
  return graph;
}

/// Every block is a node of the cluster, all of whose GPUs NVLink joins.
std::string domains_text(SlurmTopology topology, const std::string& file, const ClusterBase& base, const ImportRequest& request,
                         ImportResult& result) {
  std::erase_if(topology.blocks, [](const SlurmTopology::Block& block) { return block.nodes.empty(); });
  std::vector<std::size_t> sizes;
  for (const SlurmTopology::Block& block : topology.blocks) sizes.push_back(block.nodes.size());
  std::ranges::sort(sizes, std::greater{});
  std::size_t each = 0, most = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] * (i + 1) >= most) {
      most = sizes[i] * (i + 1);
      each = sizes[i];
    }
  }
  std::vector<std::string> hosts, left_out;
  for (SlurmTopology::Block& block : topology.blocks) {
    std::ranges::stable_sort(block.nodes, comes_before);
    const std::size_t kept = block.nodes.size() < each ? 0 : each;
    hosts.insert(hosts.end(), block.nodes.begin(), block.nodes.begin() + static_cast<std::ptrdiff_t>(kept));
    left_out.insert(left_out.end(), block.nodes.begin() + static_cast<std::ptrdiff_t>(kept), block.nodes.end());
  }
  if (!left_out.empty())
    result.warnings.push_back(fmt::format("{} nodes are left out, as the domains of a cluster have equally many ({}): {}",
                                          left_out.size(), each, excerpt(host_list_of(left_out))));
  std::int64_t gpus = gpus_of_a_tray;
  if (request.gpus != 0) {
    gpus = gpus_of_host(base, std::ssize(hosts), 0, file, request, result);
  } else {
    result.assumed.push_back(fmt::format("{} GPUs per host, as a tray of {} has (--gpus)", gpus, usual_cluster_of_domains));
  }
  const auto per_node = static_cast<std::int64_t>(each) * gpus;
  const std::int64_t nics = std::max<std::int64_t>(1, base.spec.nics_per_node * per_node / base.spec.gpus_per_node);
  result.assumed.push_back(fmt::format("each block is one NVLink domain of {} GPUs with {} NICs", per_node, nics));
  result.assumed.push_back("the blocks are joined by the fabric of " + base.name);
  std::string text = cluster_head(base, file);
  text += fmt::format("gpus: {}\ngpus_per_node: {}\nnics_per_node: {}\n", std::ssize(hosts) * gpus, per_node, nics);
  return text + fmt::format("hosts_per_node: {}\n", each) + hosts_text(hosts);
}

/// A switch for each block, for a preset whose NVLink domain is a host.
SlurmTopology tree_of_blocks(const SlurmTopology& topology, ImportResult& result) {
  SlurmTopology tree;
  for (const SlurmTopology::Block& block : topology.blocks)
    if (!block.nodes.empty()) tree.switches.push_back({.name = block.name, .nodes = block.nodes, .place = block.place});
  result.assumed.emplace_back("each block is a switch with its hosts on it, as a node of the preset is a host");
  return tree;
}

}  // namespace

/// Reads a topology.conf or topology.yaml of Slurm into a cluster: its switches as a custom fabric, or its blocks as NVLink
/// domains.
ImportResult import_slurm_topology(const ImportSource& /*source*/, const ImportRequest& request) {
  const std::string& file = request.paths.front();
  const std::string text = read_large_text(file, "a topology.conf or topology.yaml of Slurm");
  SlurmTopology topology = read_slurm_topology(text, file, entry_of(request));
  ImportResult result;
  result.ignored = std::move(topology.unused);
  if (!topology.is_default)
    result.assumed.push_back("the topology " + topology.name + ", as none is the cluster's default (--set topology=NAME)");
  if (topology.blocks.empty()) {
    ImportResult unused;
    const ClusterSpec base = cluster_base(request, unused).spec;
    result.out = cluster_of_graph(graph_of(std::move(topology), base, result), file, request, result);
    return result;
  }
  std::vector<std::vector<std::string>*> lists;
  for (SlurmTopology::Block& block : topology.blocks) lists.push_back(&block.nodes);
  tell_several(once(lists), "several blocks", result);
  ImportResult of_base;
  const ClusterBase base = cluster_base(request, of_base, usual_cluster_of_domains);
  if (spans_hosts(base)) {
    result.assumed.insert(result.assumed.end(), of_base.assumed.begin(), of_base.assumed.end());
    result.out = domains_text(std::move(topology), file, base, request, result);
  } else {
    result.out = cluster_of_graph(graph_of(tree_of_blocks(topology, result), base.spec, result), file, request, result);
  }
  return result;
}

}  // namespace tandem::studies
