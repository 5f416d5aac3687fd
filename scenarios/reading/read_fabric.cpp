#include <algorithm>
#include <map>

#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

/// A switch and where it stands, so that what is found wrong later has a place.
struct Written {
  SwitchSpec spec;
  const YamlNode* node = nullptr;
  std::vector<const YamlNode*> uplinks;
};

SwitchSpec::Uplink read_uplink(const YamlNode& node) {
  const Reader uplink(node, "cluster.fabric.switches.up", {"to", "cables", "gbps"});
  return {.to = uplink.text("to"), .cables = uplink.integer("cables", {1, 4096}, 1), .gbps = uplink.number("gbps", {1e-3, 1e6})};
}

Written read_switch(const YamlNode& node) {
  const Reader reader(node, "cluster.fabric.switches", {"name", "nics", "up"});
  Written written{.spec = {.name = reader.text("name")}, .node = &node, .uplinks = one_or_several(reader.child("up"))};
  if (reader.has("nics")) {
    for (const auto& [first, last] : reader.ranges("nics", {0, 65'536 * max_gpus})) written.spec.nics.push_back({first, last});
  }
  for (const YamlNode* uplink : written.uplinks) written.spec.up.push_back(read_uplink(*uplink));
  return written;
}

const Place& place_in(const YamlNode& node, std::string_view key) {
  const YamlNode* value = node.find(key);
  return value == nullptr ? node.place : value->place;
}

class Checks {
 public:
  explicit Checks(const std::vector<Written>& switches) : switches_(switches) {}

  void run() {
    names();
    uplinks();
    nics();
    for (std::size_t i = 0; i < switches_.size(); ++i) climb(i);
  }

 private:
  const std::vector<Written>& switches_;
  std::map<std::string, std::size_t> by_name_;
  enum class Visit : std::uint8_t {
    none,
    underway,
    done
  };
  std::vector<Visit> visits_ = std::vector<Visit>(switches_.size(), Visit::none);

  void names() {
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const std::string& name = switches_[i].spec.name;
      if (!by_name_.emplace(name, i).second)
        throw InputError(place_in(*switches_[i].node, "name"),
                         "two switches are named " + excerpt(name) + ", expected distinct names");
    }
  }

  void uplinks() const {
    std::vector<std::string> names;
    for (const Written& one : switches_) names.push_back(one.spec.name);
    for (const Written& one : switches_) {
      for (std::size_t u = 0; u < one.uplinks.size(); ++u) {
        const std::string& to = one.spec.up[u].to;
        if (by_name_.contains(to)) continue;
        throw InputError(place_in(*one.uplinks[u], "to"), "there is no switch " + excerpt(to) + suggestion(to, names));
      }
    }
  }

  void nics() const {
    std::map<std::int64_t, std::pair<std::int64_t, std::size_t>> taken;  // by first NIC: the last, and the switch
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      for (const IndexRange& range : switches_[i].spec.nics) {
        auto next = taken.upper_bound(range.last);
        if (next != taken.begin() && std::prev(next)->second.first >= range.first) {
          const auto& [first, other] = *std::prev(next);
          throw InputError(place_in(*switches_[i].node, "nics"), "NIC " + std::to_string(std::max(first, range.first)) +
                                                                     " hangs on " + excerpt(switches_[other.second].spec.name) +
                                                                     " already, expected each NIC on one switch");
        }
        taken[range.first] = {range.last, i};
      }
    }
  }

  /// Depth first along the uplinks; one that leads to a switch underway closes a circle.
  void climb(std::size_t from) {
    if (visits_[from] == Visit::done) return;
    visits_[from] = Visit::underway;
    const Written& one = switches_[from];
    for (std::size_t u = 0; u < one.uplinks.size(); ++u) {
      const std::size_t to = by_name_.at(one.spec.up[u].to);
      if (visits_[to] == Visit::underway)
        throw InputError(place_in(*one.uplinks[u], "to"), "the uplink from " + excerpt(one.spec.name) + " to " +
                                                              excerpt(one.spec.up[u].to) +
                                                              " closes a circle, expected uplinks that lead further up only");
      climb(to);
    }
    visits_[from] = Visit::done;
  }
};

std::vector<SwitchSpec> read_switches(const Reader& fabric) {
  constexpr std::size_t most_switches = 4096;
  if (!fabric.has("switches"))
    fabric.fail("kind", "cluster.fabric.switches is missing, expected a list of switches with kind custom");
  std::vector<Written> switches;
  for (const YamlNode* node : one_or_several(fabric.child("switches"))) switches.push_back(read_switch(*node));
  if (switches.empty() || switches.size() > most_switches)
    fabric.fail("switches", "cluster.fabric.switches lists " + std::to_string(switches.size()) + ", expected 1 to " +
                                grouped(most_switches) + " switches");
  Checks(switches).run();
  std::vector<SwitchSpec> specs;
  for (Written& written : switches) specs.push_back(std::move(written.spec));
  return specs;
}

}  // namespace

FabricSpec read_fabric(const YamlNode& node) {
  const Reader fabric(node, "cluster.fabric",
                      {"kind", "tiers", "rail_optimized", "leaf_ports", "pod_leaves", "oversubscription", "routing", "ecmp_seed",
                       "flows", "switches"});
  FabricSpec spec;
  using Kind = FabricSpec::Kind;
  spec.kind = fabric.choice<Kind>("kind",
                                  {{"fat-tree", Kind::fat_tree},
                                   {"dragonfly+", Kind::dragonfly_plus},
                                   {"dragonfly-plus", Kind::dragonfly_plus},
                                   {"switch", Kind::one_switch},
                                   {"custom", Kind::custom},
                                   {"rail-only", {}},
                                   {"torus", {}}},
                                  Kind::fat_tree);
  spec.tiers = static_cast<int>(fabric.integer("tiers", {2, 3}, 3));
  if (spec.kind == Kind::dragonfly_plus && spec.tiers != 3)
    fabric.fail("tiers",
                "tiers 2 with kind dragonfly+, whose groups have leaves and spines and are joined by a third tier; expected 3");
  spec.rail_optimized = fabric.boolean("rail_optimized", true);
  spec.leaf_ports = fabric.integer("leaf_ports", {1, 65'536}, spec.leaf_ports);
  spec.pod_leaves = fabric.integer("pod_leaves", {1, 65'536}, spec.pod_leaves);
  const std::size_t tiers = static_cast<std::size_t>(spec.tiers);
  spec.oversubscription = fabric.numbers("oversubscription", {1e-3, 1e3}, std::vector<double>(tiers, 1.0));
  if (spec.oversubscription.size() != tiers)
    fabric.fail("oversubscription", "oversubscription lists " + std::to_string(spec.oversubscription.size()) +
                                        " tiers, expected tiers " + std::to_string(tiers) + ": NIC to leaf, leaf to spine" +
                                        (tiers == 3 ? ", spine to core" : ""));
  spec.routing = fabric.choice<FlowRouting>("routing", choices(flow_routing_names), FlowRouting::adaptive);
  spec.ecmp_seed = static_cast<std::uint64_t>(fabric.integer("ecmp_seed", {0, 1'000'000'000'000}, 1));
  spec.flows = fabric.integer("flows", {1, 64}, 1);
  if (spec.kind == Kind::custom) {
    spec.switches = read_switches(fabric);
  } else if (fabric.has("switches")) {
    fabric.fail("switches", "cluster.fabric.switches with a kind that has its own switches, expected kind custom");
  }
  return spec;
}

}  // namespace tandem::scenarios
