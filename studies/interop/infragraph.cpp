#include "studies/interop/infragraph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/yaml_tree.h"
#include "studies/interop/infragraph_devices.h"

namespace tandem::studies {
namespace {

struct GraphInstance {
  std::string device;
  std::int64_t count = 1;
};

class InfraGraphReader {
 public:
  InfraGraphReader(const YamlNode& document, ImportResult& result) : document_(document), result_(result), devices_(document) {}

  ClusterGraph read() && {
    read_instances();
    for (const YamlNode* link : infragraph_list(document_, "links"))
      links_[infragraph_text(*link, "name")] = infragraph_gbps(*link);
    const std::vector<const YamlNode*> edges = infragraph_list(document_, "edges");
    if (edges.empty()) return lone_node();
    for (const YamlNode* edge : edges) add_edge(*edge);
    if (ends_of_xpus_ > 0)
      result_.warnings.push_back(
          fmt::format("{} links of xpus to switches are left out, as what joins GPUs belongs to the node", ends_of_xpus_));
    drop_lone_hosts();
    graph_.gpus_per_host = gpus_of_hosts();
    graph_.nvlink_GBps = nvlink_of_hosts();
    return std::move(graph_);
  }

 private:
  const YamlNode& document_;
  ImportResult& result_;
  GraphDevices devices_;
  std::map<std::string, GraphInstance> instances_;
  std::map<std::string, double> links_;
  ClusterGraph graph_;
  std::map<std::string, std::size_t> hosts_, switches_;  ///< by "name.index"
  std::set<std::string> nics_;                           ///< ends that have a cable
  std::set<std::string> host_devices_;
  std::int64_t ends_of_xpus_ = 0;

  /// The only instance, a node without a fabric.
  ClusterGraph lone_node() {
    const GraphInstance& only = instances_.begin()->second;
    const std::int64_t gpus = devices_.xpus_in(only.device);
    if (instances_.size() > 1 || only.count > 1 || gpus == 0)
      throw InputError(document_.place,
                       std::string("has no edges between its instances, expected one host with xpus, or ") + an_infragraph);
    host_devices_.insert(only.device);
    graph_.hosts.push_back({instances_.begin()->first});
    graph_.gpus_per_host = gpus;
    graph_.nvlink_GBps = nvlink_of_hosts();
    return std::move(graph_);
  }

  void read_instances() {
    for (const YamlNode* item : infragraph_list(document_, "instances")) {
      const std::string name = infragraph_text(*item, "name"), device = infragraph_text(*item, "device");
      devices_.check(device, item->find("device")->place);
      if (!instances_.emplace(name, GraphInstance{device, infragraph_count(*item)}).second)
        throw InputError(item->place, "two instances are named " + excerpt(name) + ", expected distinct names");
    }
    if (instances_.empty()) throw InputError(document_.place, std::string("has no instances, expected ") + an_infragraph);
  }

  std::vector<GraphEnd> ends_of(const YamlNode& edge, const char* key) const {
    const YamlNode* end = edge.find(key);
    if (end == nullptr || end->kind != YamlNode::Kind::mapping)
      throw InputError(edge.place, std::string(key) + " is missing in an edge, expected " + an_infragraph);
    const std::string instance = infragraph_text(*end, "instance"), component = infragraph_text(*end, "component");
    const std::string name = instance.substr(0, instance.find('['));
    std::vector<std::string> names;
    for (const auto& [other, one] : instances_) names.push_back(other);
    const auto found = instances_.find(name);
    const Place& place = end->find("instance")->place;
    if (found == instances_.end()) throw InputError(place, "there is no instance " + excerpt(name) + suggestion(name, names));
    const std::vector<GraphEnd> components =
        devices_.components_in(found->second.device, component, end->find("component")->place);
    std::vector<GraphEnd> ends;
    for (const std::int64_t index : GraphDevices::indexes_in(instance, found->second.count, place)) {
      for (GraphEnd one : components) {
        one.owner = name + "." + std::to_string(index);
        ends.push_back(std::move(one));
      }
    }
    return ends;
  }

  void add_edge(const YamlNode& edge) {
    const std::string link = infragraph_text(edge, "link"), scheme = infragraph_text(edge, "scheme", "many2many");
    if (!links_.contains(link)) {
      std::vector<std::string> names;
      for (const auto& [name, gbps] : links_) names.push_back(name);
      throw InputError(edge.find("link")->place, "there is no link " + excerpt(link) + suggestion(link, names));
    }
    if (scheme != "one2one" && scheme != "many2many")
      throw InputError(edge.find("scheme")->place, "scheme is " + excerpt(scheme) + ", expected one2one or many2many");
    const std::vector<GraphEnd> ones = ends_of(edge, "ep1"), others = ends_of(edge, "ep2");
    constexpr std::size_t most_cables = 4'000'000;
    const bool is_product = scheme == "many2many";
    if (is_product && ones.size() > most_cables / std::max<std::size_t>(1, others.size()))
      throw InputError(edge.place, "stands for more than 4,000,000 cables");
    for (std::size_t i = 0; i < (is_product ? ones.size() : std::min(ones.size(), others.size())); ++i) {
      for (std::size_t k = is_product ? 0 : i; k < (is_product ? others.size() : i + 1); ++k)
        add_cable(ones[i], others[k], links_.at(link), edge.place);
    }
  }

  bool is_host(const std::string& owner) {
    const std::string& device = instances_.at(owner.substr(0, owner.rfind('.'))).device;
    if (devices_.xpus_in(device) == 0) return false;
    host_devices_.insert(device);
    return true;
  }

  static std::size_t number_of(std::map<std::string, std::size_t>& numbers, const std::string& owner) {
    return numbers.emplace(owner, numbers.size()).first->second;
  }

  std::size_t switch_of(const std::string& owner) {
    const std::size_t number = number_of(switches_, owner);
    if (number == graph_.switches.size()) graph_.switches.push_back(owner);
    return number;
  }

  void add_cable(const GraphEnd& one, const GraphEnd& other, double gbps, const Place& place) {
    if (one.owner == other.owner) return;
    const bool first = is_host(one.owner), second = is_host(other.owner);
    if (first && second)
      throw InputError(place,
                       excerpt(one.owner) + " and " + excerpt(other.owner) +
                           " are joined without a switch, which a custom fabric does not have; expected switches between hosts");
    if (!first && !second) {
      graph_.cables.push_back({switch_of(one.owner), switch_of(other.owner), 1, gbps});
      return;
    }
    const GraphEnd& of_host = first ? one : other;
    if (of_host.choice == "xpu") {
      ++ends_of_xpus_;
      return;
    }
    const std::size_t host = number_of(hosts_, of_host.owner);
    if (host == graph_.hosts.size()) graph_.hosts.push_back({of_host.owner});
    graph_.hosts[host].nics.push_back({switch_of(first ? other.owner : one.owner), gbps});
  }

  void drop_lone_hosts() {
    std::int64_t of_hosts = 0;
    for (const auto& [name, instance] : instances_)
      if (devices_.xpus_in(instance.device) > 0) of_hosts += instance.count;
    if (of_hosts == 0)
      throw InputError(document_.place, std::string("has no instance with xpus, expected hosts with GPUs: ") + an_infragraph);
    const std::int64_t lone = of_hosts - std::ssize(graph_.hosts);
    if (lone > 0)
      result_.warnings.push_back(fmt::format("{} of {} hosts are left out, which no NIC joins to a switch", lone, of_hosts));
  }

  std::int64_t gpus_of_hosts() const {
    std::int64_t gpus = 0;
    for (const std::string& device : host_devices_) {
      const std::int64_t of_device = devices_.xpus_in(device);
      if (gpus != 0 && of_device != gpus)
        throw InputError(devices_.at(device).node->place,
                         fmt::format("device {} has {} xpus, another host {}; expected hosts with equally many", excerpt(device),
                                     of_device, gpus));
      gpus = of_device;
    }
    return gpus;
  }

  /// Returns GB/s of one xpu's links named after NVLink or xGMI, where they state a bandwidth; 0 where they do not.
  double nvlink_of_hosts() const {
    if (host_devices_.size() != 1) return 0;
    const GraphDevice& device = devices_.at(*host_devices_.begin());
    std::map<std::string, double> sum;  // Gbit/s by xpu
    for (const YamlNode* edge : infragraph_list(*device.node, "edges")) {
      const std::string link = infragraph_text(*edge, "link");
      const auto gbps = device.links.find(link);
      const bool is_nvlink = link.find("nvl") != std::string::npos || link.find("xgmi") != std::string::npos;
      if (!is_nvlink || gbps == device.links.end() || gbps->second == 0) continue;
      const auto ends = [&](const char* key) {
        const YamlNode* end = edge->find(key);
        std::string component = end == nullptr ? "" : infragraph_text(*end, "component");
        if (end != nullptr && end->find("device") != nullptr) component = infragraph_text(*end, "device") + "." + component;
        return end == nullptr ? std::vector<GraphEnd>{} : devices_.components_in(*host_devices_.begin(), component, end->place);
      };
      const std::vector<GraphEnd> ones = ends("ep1"), others = ends("ep2");
      const bool is_product = infragraph_text(*edge, "scheme", "many2many") == "many2many";
      for (const GraphEnd& one : ones)
        if (one.choice == "xpu") sum[one.component] += gbps->second * static_cast<double>(is_product ? others.size() : 1);
      for (const GraphEnd& other : others)
        if (other.choice == "xpu") sum[other.component] += gbps->second * static_cast<double>(is_product ? ones.size() : 1);
    }
    return sum.empty() ? 0 : sum.begin()->second / 8;
  }
};

}  // namespace

ClusterGraph read_infragraph(const std::string& text, const std::string& file, ImportResult& result) {
  const YamlNode document = parse_yaml(text, file);
  const YamlNode* top = &document;
  if (document.kind != YamlNode::Kind::mapping)
    throw InputError(document.place, "is " + describe(document) + ", expected " + an_infragraph);
  if (const YamlNode* wrapped = document.find("infrastructure"); wrapped != nullptr && wrapped->kind == YamlNode::Kind::mapping)
    top = wrapped;
  if (const YamlNode* draft = top->find("connections"))
    throw InputError(draft->place,
                     std::string("`connections` stands there, as in drafts of InfraGraph; expected ") + an_infragraph);
  return InfraGraphReader(*top, result).read();
}

}  // namespace tandem::studies
