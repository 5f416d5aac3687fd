#include <algorithm>
#include <string>

#include "runtime/base/host_list.h"
#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/yaml_tree.h"
#include "studies/interop/slurm_topology.h"

namespace tandem::studies {
namespace {

using Kind = YamlNode::Kind;

constexpr const char* a_topology_yaml =
    "Slurm's topology.yaml: a list of topologies, each with `topology: NAME` and a `tree` or `block`";

/// Returns a host list that is one text or a list of these.
std::string joined_list(const YamlNode& node, const std::string& name) {
  if (node.kind == Kind::scalar) return node.text;
  if (node.kind == Kind::null) return "";
  std::string list;
  if (node.kind == Kind::sequence) {
    for (const YamlNode& item : node.items) {
      if (item.kind != Kind::scalar) throw InputError(item.place, name + " has " + describe(item) + ", expected host lists");
      list += (list.empty() ? "" : ",") + item.text;
    }
    return list;
  }
  throw InputError(node.place, name + " is " + describe(node) + ", expected a host list such as tux[0-3,12]");
}

std::vector<std::string> nodes_at(const YamlNode& mapping, const std::string& name) {
  const YamlNode* nodes = mapping.find("nodes");
  if (nodes == nullptr) return {};
  const std::string list = joined_list(*nodes, name);
  return list.empty() ? std::vector<std::string>{} : slurm_nodes(list, nodes->place);
}

std::vector<const YamlNode*> mappings_at(const YamlNode& mapping, std::string_view key, const std::string& name) {
  const YamlNode* found = mapping.find(key);
  if (found == nullptr) throw InputError(mapping.place, name + " is missing, expected a list");
  if (found->kind == Kind::mapping) return {found};
  if (found->kind != Kind::sequence)
    throw InputError(found->place, name + " is " + describe(*found) + ", expected a list of mappings");
  std::vector<const YamlNode*> all;
  for (const YamlNode& item : found->items) all.push_back(&item);
  return all;
}

void read_tree(const YamlNode& tree, SlurmTopology& topology) {
  const Reader known(tree, "tree", {"switches"});
  for (const YamlNode* item : mappings_at(tree, "switches", "tree.switches")) {
    const Reader reader(*item, "tree.switches", {"switch", "children", "nodes"});
    SlurmTopology::Switch& one = topology.switches.emplace_back();
    one.name = reader.text("switch");
    one.place = item->place;
    one.nodes = nodes_at(*item, "tree.switches.nodes");
    if (const YamlNode* children = item->find("children"))
      one.children = expand_host_list(joined_list(*children, "tree.switches.children"), children->place);
  }
  if (topology.switches.empty()) throw InputError(tree.place, "tree.switches is empty, expected switches");
}

void read_blocks(const YamlNode& block, SlurmTopology& topology) {
  const Reader known(block, "block", {"block_sizes", "blocks"});
  for (const YamlNode* item : mappings_at(block, "blocks", "block.blocks")) {
    const Reader reader(*item, "block.blocks", {"block", "nodes"});
    topology.blocks.push_back(
        {.name = reader.text("block"), .nodes = nodes_at(*item, "block.blocks.nodes"), .place = item->place});
  }
  if (topology.blocks.empty()) throw InputError(block.place, "block.blocks is empty, expected blocks");
  const YamlNode* sizes = block.find("block_sizes");
  if (sizes == nullptr) return;
  topology.sizes_place = sizes->place;
  const std::vector<YamlNode> one{*sizes};
  for (const YamlNode& size : sizes->kind == Kind::sequence ? sizes->items : one) {
    const bool is_number = size.kind == Kind::scalar && !size.text.empty() && size.text.size() < 10 &&
                           std::ranges::all_of(size.text, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || std::stoll(size.text) == 0)
      throw InputError(size.place, "block_sizes has " + describe(size) + ", expected numbers of nodes such as [4, 16]");
    topology.block_sizes.push_back(std::stoll(size.text));
  }
}

bool is_read(const YamlNode& entry) { return entry.find("tree") != nullptr || entry.find("block") != nullptr; }

/// Returns the entries of the file, each a mapping with a name.
std::vector<const YamlNode*> entries_of(const YamlNode& document) {
  if (document.kind == Kind::mapping && document.find("switches") != nullptr)
    throw InputError(document.place,
                     std::string("has `switches` at the top, as a model of topograph or its kind; expected ") + a_topology_yaml);
  std::vector<const YamlNode*> entries;
  if (document.kind == Kind::mapping) entries.push_back(&document);
  for (const YamlNode& item : document.items) entries.push_back(&item);
  if (entries.empty()) throw InputError(document.place, "is " + describe(document) + ", expected " + a_topology_yaml);
  for (const YamlNode* entry : entries)
    if (entry->kind != Kind::mapping || entry->find("topology") == nullptr)
      throw InputError(entry->place, (entry->kind == Kind::mapping ? "a mapping without `topology`" : describe(*entry)) +
                                         std::string(" stands there, expected ") + a_topology_yaml);
  return entries;
}

std::string name_of_entry(const YamlNode& entry) {
  const YamlNode& name = *entry.find("topology");
  if (name.kind != Kind::scalar || name.text.empty())
    throw InputError(name.place, "topology is " + describe(name) + ", expected a name");
  return name.text;
}

/// Returns the entry that counts.
const YamlNode& chosen_of(const std::vector<const YamlNode*>& entries, std::string_view wanted, bool& is_default) {
  std::vector<std::string> names;
  const YamlNode* chosen = nullptr;
  for (const YamlNode* entry : entries) {
    names.push_back(name_of_entry(*entry));
    const YamlNode* stated = entry->find("cluster_default");
    const bool marked = stated != nullptr && boolean_of(*stated, "cluster_default");
    if (!wanted.empty()) {
      if (names.back() == wanted) chosen = entry;
    } else if (marked && is_read(*entry)) {
      chosen = entry;
      is_default = true;
    } else if (chosen == nullptr && is_read(*entry)) {
      chosen = entry;
      is_default = false;
    }
    if (marked && chosen == entry) break;
  }
  if (!wanted.empty() && chosen == nullptr)
    throw InputError({"--set topology", 0, 0}, "there is no topology " + excerpt(wanted) + suggestion(wanted, names));
  if (chosen == nullptr || !is_read(*chosen))
    throw InputError(
        (chosen == nullptr ? entries.front() : chosen)->place,
        "has no tree and no block: flat, ring and torus3d say nothing of switches; expected " + std::string(a_topology_yaml));
  return *chosen;
}

}  // namespace

SlurmTopology parse_slurm_yaml(const std::string& text, const std::string& file, std::string_view wanted) {
  const YamlNode document = parse_yaml(text, file);
  SlurmTopology topology;
  const std::vector<const YamlNode*> entries = entries_of(document);
  topology.is_default = entries.size() == 1 || !wanted.empty();
  const YamlNode& chosen = chosen_of(entries, wanted, topology.is_default);
  if (entries.size() == 1) topology.is_default = true;
  const Reader known(chosen, "topology", {"topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d"});
  topology.name = name_of_entry(chosen);
  for (const YamlNode* entry : entries)
    if (entry != &chosen) topology.unused.push_back("topology " + name_of_entry(*entry));
  if (chosen.find("tree") != nullptr && chosen.find("block") != nullptr)
    throw InputError(chosen.place, "topology " + excerpt(topology.name) + " has a tree and a block, expected one of the two");
  if (const YamlNode* tree = chosen.find("tree")) {
    read_tree(*tree, topology);
  } else {
    read_blocks(*chosen.find("block"), topology);
  }
  return topology;
}

}  // namespace tandem::studies
