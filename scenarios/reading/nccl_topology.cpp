#include "scenarios/reading/nccl_topology.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "runtime/base/text_file.h"
#include "scenarios/reading/overlay.h"
#include "topology/fabric.h"
#include "topology/nccl_topology.h"

namespace tandem::scenarios {
namespace {

constexpr const char* topology_field = "nccl_topology";
using Kind = YamlNode::Kind;

NodeNetwork read_network(const std::string& path) {
  const std::string text = read_text_file(path, "NCCL's topology in XML");
  try {
    return network_of(read_nccl_topology(text));
  } catch (const XmlError& error) {
    throw InputError({path, error.line, error.column}, error.what());
  } catch (const TopologyError& error) {
    throw InputError({.file = path}, error.what());
  }
}

void add(YamlNode& mapping, const std::string& key, YamlNode value) {
  mapping.entries.push_back({key, key, mapping.place, std::move(value)});
}

YamlNode numbers(const std::vector<std::int64_t>& values, const Place& place) {
  YamlNode list = make_node(Kind::sequence, place);
  for (const std::int64_t value : values) list.items.push_back(make_scalar(std::to_string(value), place));
  return list;
}

YamlNode ways(const PcieSpec& pcie, const Place& place) {
  YamlNode mapping = make_node(Kind::mapping, place), ports = make_node(Kind::sequence, place);
  for (const PcieSpec::Port& port : pcie.ports) {
    YamlNode& item = ports.items.emplace_back(make_node(Kind::mapping, place));
    YamlNode name = make_scalar(port.name, place);
    name.quoted = true;
    add(item, "name", std::move(name));
    add(item, "GBps", make_scalar(fmt::format("{}", port.GBps), place));
    add(item, "gpus", numbers(port.gpus, place));
  }
  if (!pcie.nic_of_gpu.empty()) add(mapping, "nic_of_gpu", numbers(pcie.nic_of_gpu, place));
  add(mapping, "ports", std::move(ports));
  return mapping;
}

std::vector<std::int64_t> whole_numbers(const Reader& reader, std::string_view key, std::int64_t below) {
  std::vector<std::int64_t> values;
  for (const double value : reader.numbers(key, {0, static_cast<double>(below - 1)}, {})) {
    values.push_back(static_cast<std::int64_t>(value));
    if (static_cast<double>(values.back()) != value)
      reader.fail(key, std::string(key) + " has a fraction, expected whole numbers");
  }
  return values;
}

}  // namespace

void import_nccl_topology(YamlNode& cluster, const std::string& folder) {
  const YamlNode* named = cluster.find(topology_field);
  if (named == nullptr || named->kind == Kind::mapping) return;
  if (named->kind != Kind::scalar || named->text.empty())
    throw InputError(named->place, "cluster.nccl_topology is " + describe(*named) +
                                       ", expected the path of an XML file that NCCL wrote where NCCL_TOPO_DUMP_FILE said");
  const std::string path = (std::filesystem::path(folder) / named->text).string();
  const NodeNetwork network = read_network(path);

  const Place place{.file = path};
  YamlNode found = make_node(Kind::mapping, place);
  const std::string gpus = std::to_string(network.gpus), nics = std::to_string(network.nics);
  add(found, "gpus_per_node", make_scalar(gpus, place));
  add(found, "nics_per_node", make_scalar(nics, place));
  if (network.nvlink_GBps > 0) add(found, "nvlink_GBps", make_scalar(fmt::format("{}", network.nvlink_GBps), place));
  if (network.is_mesh) {
    add(found, "node_links", make_scalar("mesh", place));
    add(found, "nvls", make_scalar("false", place));
  } else if (network.nvlink_GBps > 0) {
    add(found, "node_links", make_scalar("switched", place));
  }
  if (network.nic_gbps > 0) add(found, "nic_gbps", make_scalar(fmt::format("{}", network.nic_gbps), place));
  fill_in(cluster, found);
  const bool same_node = cluster.find("gpus_per_node")->text == gpus && cluster.find("nics_per_node")->text == nics;
  *cluster.find(topology_field) = same_node ? ways(network.pcie, place) : make_node(Kind::mapping, place);
}

PcieSpec read_imported_pcie(const Reader& cluster, std::int64_t gpus_per_node, std::int64_t nics_per_node) {
  PcieSpec spec;
  if (nics_per_node == 0) return spec;
  const Reader node(cluster.child(topology_field), "cluster.nccl_topology", {"nic_of_gpu", "ports"});
  spec.nic_of_gpu = whole_numbers(node, "nic_of_gpu", nics_per_node);
  if (!spec.nic_of_gpu.empty() && std::ssize(spec.nic_of_gpu) != gpus_per_node)
    node.fail("nic_of_gpu",
              fmt::format("nic_of_gpu lists {} GPUs, expected gpus_per_node {}", spec.nic_of_gpu.size(), gpus_per_node));
  for (const YamlNode& item : node.child("ports").items) {
    const Reader port(item, "cluster.nccl_topology.ports", {"name", "GBps", "gpus"});
    spec.ports.push_back({.name = port.text("name"),
                          .GBps = port.number("GBps", {1e-3, 1e6}),
                          .gpus = whole_numbers(port, "gpus", gpus_per_node)});
  }
  return spec;
}

}  // namespace tandem::scenarios
