#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::studies {

inline constexpr const char* an_infragraph =
    "an infrastructure of InfraGraph as its schema has it today: devices, links, instances, and edges with scheme, ep1 and ep2";

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

/// The devices of an infrastructure by name.
class GraphDevices {
 public:
  /// Throws InputError, also for the older form of devices.
  explicit GraphDevices(const YamlNode& document);

  const GraphDevice& at(const std::string& name) const { return devices_.at(name); }
  /// Throws InputError where there is no such device.
  void check(const std::string& name, const Place& place) const;
  /// Counts the xpus of a device and of the devices in it.
  std::int64_t xpus_in(const std::string& device, int depth = 0) const;
  /// Returns the components that "nic[0:2]" or "cx5[0].port" stands for in a device. Throws InputError.
  std::vector<GraphEnd> components_in(const std::string& device, const std::string& text, const Place& place) const;
  /// Returns the indexes that "name", "name[3]" or "name[0:4:2]" stands for, of `count`. Throws InputError.
  static std::vector<std::int64_t> indexes_in(const std::string& part, std::int64_t count, const Place& place);

 private:
  std::map<std::string, GraphDevice> devices_;
};

// Fields of mappings. All throw InputError.

std::string infragraph_text(const YamlNode& node, const char* key, const char* fallback = nullptr);
std::int64_t infragraph_count(const YamlNode& node);
std::vector<const YamlNode*> infragraph_list(const YamlNode& node, const char* key);
/// Returns Gbit/s of a link; 0 where none is stated, or transfers, whose width is not.
double infragraph_gbps(const YamlNode& link);

}  // namespace tandem::studies
