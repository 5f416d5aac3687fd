#include "studies/interop/slurm_topology.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "runtime/base/host_list.h"
#include "runtime/base/nearest.h"

namespace tandem::studies {
namespace {

bool is_guid(std::string_view name) {
  return name.starts_with("0x") && name.size() > 2 &&
         std::ranges::all_of(name.substr(2), [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
}

template <typename Items>
void check_names(const Items& items, const std::string& kind) {
  std::set<std::string_view> known;
  for (const auto& item : items)
    if (!known.insert(item.name).second)
      throw InputError(item.place, kind + " " + excerpt(item.name) + " stands there twice, expected each once");
}

void check_children(const SlurmTopology& topology) {
  std::vector<std::string> names;
  std::map<std::string_view, std::size_t> by_name;
  for (const SlurmTopology::Switch& one : topology.switches) {
    by_name.emplace(one.name, names.size());
    names.push_back(one.name);
  }
  for (const SlurmTopology::Switch& one : topology.switches) {
    for (const std::string& child : one.children)
      if (!by_name.contains(child))
        throw InputError(one.place, "switch " + excerpt(one.name) + " has a switch " + excerpt(child) +
                                        " below it that is not there" + suggestion(child, names));
  }
  enum class Visit : std::uint8_t {
    none,
    underway,
    done
  };
  std::vector<Visit> visits(names.size());
  const auto descend = [&](const auto& self, std::size_t at) -> void {
    visits[at] = Visit::underway;
    for (const std::string& child : topology.switches[at].children) {
      const std::size_t below = by_name.at(child);
      if (visits[below] == Visit::underway)
        throw InputError(topology.switches[at].place,
                         "switch " + excerpt(names[at]) + " has " + excerpt(child) + " below it and above it, expected a tree");
      if (visits[below] == Visit::none) self(self, below);
    }
    visits[at] = Visit::done;
  };
  for (std::size_t i = 0; i < names.size(); ++i)
    if (visits[i] == Visit::none) descend(descend, i);
}

void check_tree(const SlurmTopology& topology) {
  check_names(topology.switches, "switch");
  bool has_nodes = false;
  for (const SlurmTopology::Switch& one : topology.switches) {
    has_nodes = has_nodes || !one.nodes.empty();
    if (!one.nodes.empty() && !one.children.empty())
      throw InputError(one.place,
                       "switch " + excerpt(one.name) + " has both nodes and switches below it, expected one of the two");
  }
  if (!has_nodes)
    throw InputError(
        topology.switches.front().place,
        "no switch has nodes below it, as where nodes join by themselves; expected Nodes= (nodes:) with their names");
  check_children(topology);
}

void check_blocks(const SlurmTopology& topology) {
  check_names(topology.blocks, "block");
  for (const std::int64_t size : topology.block_sizes) {
    const std::int64_t base = topology.block_sizes.front();
    const bool fits = size > 0 && size % base == 0 && std::has_single_bit(static_cast<std::uint64_t>(size / base));
    if (!fits)
      throw InputError(topology.sizes_place, "the block size " + std::to_string(size) + " is not the base block size " +
                                                 std::to_string(base) + " times a power of two, as Slurm expects it");
  }
  for (const SlurmTopology::Block& block : topology.blocks) {
    if (block.nodes.empty() || topology.block_sizes.empty()) continue;
    if (std::ssize(block.nodes) < topology.block_sizes.front())
      throw InputError(block.place, "block " + excerpt(block.name) + " has " + std::to_string(block.nodes.size()) +
                                        " nodes, expected at least the base block size " +
                                        std::to_string(topology.block_sizes.front()) + ", as Slurm does");
  }
  if (std::ranges::all_of(topology.blocks, [](const SlurmTopology::Block& block) { return block.nodes.empty(); }))
    throw InputError(topology.blocks.front().place, "no block has nodes, expected Nodes= (nodes:) with their names");
}

}  // namespace

std::vector<std::string> slurm_nodes(std::string_view list, const Place& place) {
  std::vector<std::string> names = expand_host_list(list, place);
  if (names.empty()) throw InputError(place, "names no nodes, expected a host list such as tux[0-3,12]");
  const auto guid = std::ranges::find_if(names, is_guid);
  if (guid != names.end())
    throw InputError(
        place, excerpt(*guid) + " is the GUID of an InfiniBand port and no node's name; expected host names, as Slurm has them");
  return names;
}

SlurmTopology read_slurm_topology(const std::string& text, const std::string& file, std::string_view wanted) {
  SlurmTopology topology = is_slurm_conf(text) ? parse_slurm_conf(text, file) : parse_slurm_yaml(text, file, wanted);
  if (!topology.switches.empty() && !topology.blocks.empty())
    throw InputError(topology.blocks.front().place, "has switches and blocks, expected one of the two, as Slurm's plugins do");
  if (topology.switches.empty() && topology.blocks.empty())
    throw InputError(topology.sizes_place.line > 0 ? topology.sizes_place : Place{.file = file},
                     "has no block and no switch, expected BlockName= or SwitchName= with nodes");
  topology.blocks.empty() ? check_tree(topology) : check_blocks(topology);
  return topology;
}

}  // namespace tandem::studies
