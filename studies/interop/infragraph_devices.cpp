#include "studies/interop/infragraph_devices.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"

namespace tandem::studies {
namespace {

constexpr std::int64_t most_of_a_kind = 1'048'576;

[[noreturn]] void refuse_draft(const Place& place, const std::string& what) {
  throw InputError(place, what + " stands there, as in drafts of InfraGraph; expected " + an_infragraph);
}

}  // namespace

std::string infragraph_text(const YamlNode& node, const char* key, const char* fallback) {
  const YamlNode* value = node.find(key);
  if (value == nullptr && fallback != nullptr) return fallback;
  if (value == nullptr || value->kind != YamlNode::Kind::scalar || value->text.empty())
    throw InputError(
        value == nullptr ? node.place : value->place,
        std::string(key) + (value == nullptr ? " is missing" : " is " + describe(*value)) + ", expected " + an_infragraph);
  return value->text;
}

std::int64_t infragraph_count(const YamlNode& node) {
  const YamlNode* value = node.find("count");
  if (value == nullptr) return 1;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(value->text.data(), value->text.data() + value->text.size(), count);
  if (error != std::errc{} || end != value->text.data() + value->text.size() || count < 1 || count > most_of_a_kind)
    throw InputError(value->place, "count is " + describe(*value) + ", expected a whole number from 1 to 1,048,576");
  return count;
}

std::vector<const YamlNode*> infragraph_list(const YamlNode& node, const char* key) {
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

double infragraph_gbps(const YamlNode& link) {
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

GraphDevices::GraphDevices(const YamlNode& document) {
  for (const YamlNode* item : infragraph_list(document, "devices")) {
    const std::string name = infragraph_text(*item, "name");
    GraphDevice device{.node = item};
    for (const YamlNode* component : infragraph_list(*item, "components")) {
      if (component->find("choice") == nullptr && component->find("type") != nullptr)
        refuse_draft(component->find("type")->place, "a component with `type`");
      device.components[infragraph_text(*component, "name")] = {infragraph_text(*component, "choice"),
                                                                infragraph_count(*component)};
    }
    for (const YamlNode* link : infragraph_list(*item, "links"))
      device.links[infragraph_text(*link, "name")] = infragraph_gbps(*link);
    if (item->find("connections") != nullptr) refuse_draft(item->find("connections")->place, "`connections`");
    if (!devices_.emplace(name, std::move(device)).second)
      throw InputError(item->place, "two devices are named " + excerpt(name) + ", expected distinct names");
  }
}

void GraphDevices::check(const std::string& name, const Place& place) const {
  if (devices_.contains(name)) return;
  std::vector<std::string> names;
  for (const auto& [known, device] : devices_) names.push_back(known);
  throw InputError(place, "there is no device " + excerpt(name) + suggestion(name, names));
}

std::int64_t GraphDevices::xpus_in(const std::string& device, int depth) const {
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

std::vector<std::int64_t> GraphDevices::indexes_in(const std::string& part, std::int64_t count, const Place& place) {
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

std::vector<GraphEnd> GraphDevices::components_in(const std::string& device, const std::string& text, const Place& place) const {
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

}  // namespace tandem::studies
