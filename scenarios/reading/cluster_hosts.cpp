#include "scenarios/reading/cluster_hosts.h"

#include <iterator>
#include <set>

#include "runtime/base/host_list.h"
#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"

namespace tandem::scenarios {
namespace {

void add_hosts(const YamlNode& node, std::vector<std::string>& names) {
  if (node.kind != YamlNode::Kind::scalar || node.text.empty())
    throw InputError(node.place,
                     "cluster.hosts is " + describe(node) + ", expected a host list such as tux[0-3,12], or a list of these");
  std::vector<std::string> more = expand_host_list(node.text, node.place);
  names.insert(names.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
}

}  // namespace

ClusterHosts read_cluster_hosts(const YamlNode& cluster) {
  ClusterHosts hosts;
  if (const YamlNode* per_node = cluster.find("hosts_per_node")) {
    YamlNode alone = make_node(YamlNode::Kind::mapping, cluster.place);
    alone.entries.push_back({"hosts_per_node", "hosts_per_node", per_node->place, *per_node});
    hosts.per_node = Reader(alone, "cluster", {"hosts_per_node"}).integer("hosts_per_node", {1, 65'536});
  }
  const YamlNode* listed = cluster.find("hosts");
  if (listed == nullptr) return hosts;
  if (listed->kind == YamlNode::Kind::sequence) {
    for (const YamlNode& item : listed->items) add_hosts(item, hosts.names);
  } else {
    add_hosts(*listed, hosts.names);
  }
  std::set<std::string_view> known;
  for (const std::string& name : hosts.names)
    if (!known.insert(name).second)
      throw InputError(listed->place, "cluster.hosts names " + excerpt(name) + " twice, expected each host once");
  const auto count = std::ssize(hosts.names);
  if (count % hosts.per_node != 0)
    throw InputError(listed->place, "cluster.hosts names " + grouped(count) + " hosts, expected a multiple of hosts_per_node " +
                                        grouped(hosts.per_node));
  return hosts;
}

}  // namespace tandem::scenarios
