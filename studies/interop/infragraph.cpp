#include "studies/interop/infragraph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::studies {
namespace {

constexpr const char* an_infragraph =
    "an infrastructure of InfraGraph as its schema has it today: devices, links, instances, and edges with scheme, ep1 and ep2";
constexpr std::int64_t most_of_a_kind = 1'048'576;

/// An end of an edge: a component of one of an instance's devices.
struct GraphEnd {
  std::string owner;      ///< "host.0"; empty inside a device
  std::string component;  ///< "nic.1", "cx5.0.port.0"
  std::string choice;     ///< of the component: "nic"
};

struct GraphDevice {
  struct Component {
    std::string choice;
    std::int64_t count = 1;
  };
  const YamlNode* node = nullptr;
  std::map<std::string, Component> components = {};
  std::map<std::string, double> links = {};  ///< Gbit/s by name
};

struct GraphInstance {
  std::string device;
  std::int64_t count = 1;
};

std::string text_at(const YamlNode& node, const char* key, const char* fallback = nullptr) {
  const YamlNode* value = node.find(key);
  if (value == nullptr && fallback != nullptr) return fallback;
  if (value == nullptr || value->kind != YamlNode::Kind::scalar || value->text.empty())
    throw InputError(
        value == nullptr ? node.place : value->place,
        std::string(key) + (value == nullptr ? " is missing" : " is " + describe(*value)) + ", expected " + an_infragraph);
  return value->text;
}

std::int64_t count_at(const YamlNode& node) {
  const YamlNode* value = node.find("count");
  if (value == nullptr) return 1;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(value->text.data(), value->text.data() + value->text.size(), count);
  if (error != std::errc{} || end != value->text.data() + value->text.size() || count < 1 || count > most_of_a_kind)
    throw InputError(value->place, "count is " + describe(*value) + ", expected a whole number from 1 to 1,048,576");
  return count;
}

std::vector<const YamlNode*> list_at(const YamlNode& node, const char* key) {
  const YamlNode* value = node.find(key);
  if (value == nullptr || value->kind == YamlNode::Kind::null) return {};
  if (value->kind != YamlNode::Kind::sequence)
    throw InputError(value->place, std::string(key) + " is " + describe(*value) + ", expected a list");
  std::vector<const YamlNode*> items;
  for (const YamlNode& item : value->items) {
    if (item.kind != YamlNode::Kind::mapping)
      throw InputError(item.place, std::string(key) + " has " + describe(item) + ", expected mappings");
    items.push_back(&item);
  }
  return items;
}

/// Returns Gbit/s; 0 where none is stated, or transfers, whose width is not.
double gbps_of(const YamlNode& link) {
  const YamlNode* bandwidth = find_path(link, "physical.bandwidth");
  if (bandwidth == nullptr || bandwidth->kind != YamlNode::Kind::mapping) return 0;
  for (const auto& [key, bits] : {std::pair("gigabits_per_second", 1.0), std::pair("gigabytes_per_second", 8.0)}) {
    const YamlNode* value = bandwidth->find(key);
    const YamlNode* choice = bandwidth->find("choice");
    if (value == nullptr || (choice != nullptr && choice->text != key)) continue;
    double number = 0;
    const auto [end, error] = std::from_chars(value->text.data(), value->text.data() + value->text.size(), number);
    if (error != std::errc{} || end != value->text.data() + value->text.size() || !(number > 0))
      throw InputError(value->place, std::string(key) + " is " + describe(*value) + ", expected a number above 0");
    return number * bits;
  }
  return 0;
}

class InfraGraphReader {
 public:
  InfraGraphReader(const YamlNode& document, ImportResult& result) : document_(document), result_(result) {}

  ClusterGraph read() && {
    read_devices();
    read_instances();
    for (const YamlNode* link : list_at(document_, "links")) links_[text_at(*link, "name")] = gbps_of(*link);
    const std::vector<const YamlNode*> edges = list_at(document_, "edges");
    if (edges.empty())
      throw InputError(document_.place, std::string("has no edges between its instances, expected ") + an_infragraph);
    for (const YamlNode* edge : edges) add_edge(*edge);
    std::int64_t scale_up = ends_of_xpus_;
    if (scale_up > 0)
      result_.warnings.push_back(
          fmt::format("{} links of xpus to switches are left out, as what joins GPUs belongs to the node", scale_up));
    drop_lone_hosts();
    graph_.gpus_per_host = gpus_of_hosts();
    graph_.nvlink_GBps = nvlink_of_hosts();
    return std::move(graph_);
  }

 private:
  const YamlNode& document_;
  ImportResult& result_;
  std::map<std::string, GraphDevice> devices_;
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
    const std::int64_t gpus = xpus_in(only.device);
    if (instances_.size() > 1 || only.count > 1 || gpus == 0)
      throw InputError(document_.place,
                       std::string("has no edges between its instances, expected one host with xpus, or ") + an_infragraph);
    host_devices_.insert(only.device);
    graph_.hosts.push_back({instances_.begin()->first});
    graph_.gpus_per_host = gpus;
    graph_.nvlink_GBps = nvlink_of_hosts();
    return std::move(graph_);
  }

  void read_devices() {
    for (const YamlNode* item : list_at(document_, "devices")) {
      const std::string name = text_at(*item, "name");
      GraphDevice device{.node = item};
      for (const YamlNode* component : list_at(*item, "components")) {
        if (component->find("choice") == nullptr && component->find("type") != nullptr)
          refuse_draft(component->find("type")->place, "a component with `type`");
        device.components[text_at(*component, "name")] = {text_at(*component, "choice"), count_at(*component)};
      }
      for (const YamlNode* link : list_at(*item, "links")) device.links[text_at(*link, "name")] = gbps_of(*link);
      if (item->find("connections") != nullptr) refuse_draft(item->find("connections")->place, "`connections`");
      if (!devices_.emplace(name, std::move(device)).second)
        throw InputError(item->place, "two devices are named " + excerpt(name) + ", expected distinct names");
    }
  }

  [[noreturn]] static void refuse_draft(const Place& place, const std::string& what) {
    throw InputError(place, what + " stands there, as in drafts of InfraGraph; expected " + an_infragraph);
  }

  void read_instances() {
    std::vector<std::string> names;
    for (const auto& [name, device] : devices_) names.push_back(name);
    for (const YamlNode* item : list_at(document_, "instances")) {
      const std::string name = text_at(*item, "name"), device = text_at(*item, "device");
      if (!devices_.contains(device))
        throw InputError(item->find("device")->place, "there is no device " + excerpt(device) + suggestion(device, names));
      if (!instances_.emplace(name, GraphInstance{device, count_at(*item)}).second)
        throw InputError(item->place, "two instances are named " + excerpt(name) + ", expected distinct names");
    }
    if (instances_.empty()) throw InputError(document_.place, std::string("has no instances, expected ") + an_infragraph);
  }

  std::int64_t xpus_in(const std::string& device, int depth = 0) const {
    constexpr int deepest = 16;
    const auto found = devices_.find(device);
    if (found == devices_.end() || depth > deepest) return 0;
    std::int64_t count = 0;
    for (const auto& [name, component] : found->second.components) {
      if (component.choice == "xpu") count += component.count;
      if (component.choice == "device") count += component.count * xpus_in(name, depth + 1);
    }
    return count;
  }

  /// Returns the indexes that "name", "name[3]" or "name[0:4:2]" stands for, of `count`.
  static std::vector<std::int64_t> indexes_in(const std::string& part, std::int64_t count, const Place& place) {
    const std::size_t open = part.find('[');
    std::vector<std::int64_t> numbers;  // start, stop, step; -1: left out
    if (open != std::string::npos) {
      if (part.back() != ']') throw InputError(place, excerpt(part) + " is no slice, expected one such as nic[0:2]");
      for (std::size_t begin = open + 1; begin < part.size();) {
        const std::size_t end = std::min(part.find_first_of(":]", begin), part.size());
        std::int64_t number = -1;
        const auto [stop, error] = std::from_chars(part.data() + begin, part.data() + end, number);
        if (end > begin && (error != std::errc{} || stop != part.data() + end || number < 0))
          throw InputError(place, excerpt(part) + " is no slice, expected one such as nic[0:2]");
        numbers.push_back(end > begin ? number : -1);
        begin = end + 1;
      }
    }
    const bool is_one = numbers.size() == 1 && numbers[0] >= 0;
    const std::int64_t first = !numbers.empty() && numbers[0] >= 0 ? numbers[0] : 0;
    const std::int64_t last = is_one ? first + 1 : numbers.size() > 1 && numbers[1] >= 0 ? numbers[1] : count;
    const std::int64_t step = numbers.size() > 2 && numbers[2] > 0 ? numbers[2] : 1;
    if (last > count || first >= last)
      throw InputError(place, excerpt(part) + " goes beyond the " + std::to_string(count) + " that there are, numbered from 0");
    std::vector<std::int64_t> indexes;
    for (std::int64_t i = first; i < last; i += step) indexes.push_back(i);
    return indexes;
  }

  /// Returns the components that "nic[0:2]" or "cx5[0].port" stands for in a device.
  std::vector<GraphEnd> components_in(const std::string& device, const std::string& text, const Place& place) const {
    std::vector<GraphEnd> ends{{}};
    std::string within = device;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('.', begin), text.size());
      const std::string part = text.substr(begin, end - begin), name = part.substr(0, part.find('['));
      begin = end + 1;
      const auto owner = devices_.find(within);
      std::vector<std::string> known;
      if (owner != devices_.end())
        for (const auto& [other, component] : owner->second.components) known.push_back(other);
      if (owner == devices_.end() || !owner->second.components.contains(name))
        throw InputError(place, "device " + excerpt(within) + " has no component " + excerpt(name) + suggestion(name, known));
      const GraphDevice::Component& component = owner->second.components.at(name);
      std::vector<GraphEnd> longer;
      for (const GraphEnd& so_far : ends)
        for (const std::int64_t index : indexes_in(part, component.count, place))
          longer.push_back({"", so_far.component + (so_far.component.empty() ? "" : ".") + name + "." + std::to_string(index),
                            component.choice});
      ends = std::move(longer);
      within = name;
    }
    return ends;
  }

  std::vector<GraphEnd> ends_of(const YamlNode& edge, const char* key) const {
    const YamlNode* end = edge.find(key);
    if (end == nullptr || end->kind != YamlNode::Kind::mapping)
      throw InputError(edge.place, std::string(key) + " is missing in an edge, expected " + an_infragraph);
    const std::string instance = text_at(*end, "instance"), component = text_at(*end, "component");
    const std::string name = instance.substr(0, instance.find('['));
    std::vector<std::string> names;
    for (const auto& [other, one] : instances_) names.push_back(other);
    const auto found = instances_.find(name);
    const Place& place = end->find("instance")->place;
    if (found == instances_.end()) throw InputError(place, "there is no instance " + excerpt(name) + suggestion(name, names));
    const std::vector<GraphEnd> components = components_in(found->second.device, component, end->find("component")->place);
    std::vector<GraphEnd> ends;
    for (const std::int64_t index : indexes_in(instance, found->second.count, place)) {
      for (GraphEnd one : components) {
        one.owner = name + "." + std::to_string(index);
        ends.push_back(std::move(one));
      }
    }
    return ends;
  }

  void add_edge(const YamlNode& edge) {
    const std::string link = text_at(edge, "link"), scheme = text_at(edge, "scheme", "many2many");
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
    if (xpus_in(device) == 0) return false;
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
      if (xpus_in(instance.device) > 0) of_hosts += instance.count;
    if (of_hosts == 0)
      throw InputError(document_.place, std::string("has no instance with xpus, expected hosts with GPUs: ") + an_infragraph);
    const std::int64_t lone = of_hosts - std::ssize(graph_.hosts);
    if (lone > 0)
      result_.warnings.push_back(fmt::format("{} of {} hosts are left out, which no NIC joins to a switch", lone, of_hosts));
  }

  std::int64_t gpus_of_hosts() const {
    std::int64_t gpus = 0;
    for (const std::string& device : host_devices_) {
      const std::int64_t of_device = xpus_in(device);
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
    for (const YamlNode* edge : list_at(*device.node, "edges")) {
      const std::string link = text_at(*edge, "link");
      const auto gbps = device.links.find(link);
      const bool is_nvlink = link.find("nvl") != std::string::npos || link.find("xgmi") != std::string::npos;
      if (!is_nvlink || gbps == device.links.end() || gbps->second == 0) continue;
      const auto ends = [&](const char* key) {
        const YamlNode* end = edge->find(key);
        std::string component = end == nullptr ? "" : text_at(*end, "component");
        if (end != nullptr && end->find("device") != nullptr) component = text_at(*end, "device") + "." + component;
        return end == nullptr ? std::vector<GraphEnd>{} : components_in(*host_devices_.begin(), component, end->place);
      };
      const std::vector<GraphEnd> ones = ends("ep1"), others = ends("ep2");
      const bool is_product = text_at(*edge, "scheme", "many2many") == "many2many";
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
