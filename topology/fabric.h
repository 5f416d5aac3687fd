#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/dag/network.h"
#include "topology/cluster_spec.h"

namespace tandem::topology {

/// Describes a cluster that cannot be, such as one with switches in a circle or with hosts that cannot reach each other. The
/// sentence says which they are and what helps.
struct TopologyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The switches between the NICs, as a graph.
///
/// Vertices are switches; spines that serve the same leaves are one vertex, and cables that run in parallel one edge, a bundle: a
/// leaf's uplinks to all spines of its pod, a pod's uplinks to the core. Spread ideally, each cable of a bundle carries the same
/// fraction of every flow, so the bundle shares like one link of their summed capacity. Under ECMP a flow is on one of its
/// cables.
class Fabric {
 public:
  struct Switch {
    std::string name;
    int level = 0;  ///< 0: NICs hang on it; else above the switches of lower levels
  };
  struct Bundle {
    std::string name;
    Tier tier = Tier::leaf;
    std::uint32_t id = 0;
    std::uint32_t lower = 0, upper = 0;  ///< switches
    std::uint32_t cables = 1;
    BytesPerSecond capacity = 0;  ///< of one cable, per direction
  };

  struct Step {
    std::uint32_t bundle = 0;
    bool up = true;  ///< from the bundle's lower switch to its upper one
  };
  using Route = std::vector<Step>;  ///< one switch more is crossed than it has steps

  /// Throws TopologyError.
  explicit Fabric(const ClusterSpec& cluster);

  const std::vector<Switch>& switches() const { return switches_; }
  const std::vector<Bundle>& bundles() const { return bundles_; }
  std::uint32_t leaf_of(std::int64_t nic) const;
  /// Returns whether each switch has at most one bundle up, so that there is one route between any two.
  bool is_tree() const { return is_tree_; }
  /// Returns the bundle that goes up from a switch of a tree; null at the top.
  const Bundle* bundle_up(std::uint32_t from) const { return up_[from] == none ? nullptr : &bundles_[up_[from]]; }

  /// Calls `step` for each step of the only route between two leaves of a tree, in no particular order.
  template <typename Visit>
  void walk_tree(std::uint32_t from, std::uint32_t to, const Visit& step) const {
    while (from != to) {
      std::uint32_t& lower = switches_[from].level <= switches_[to].level ? from : to;
      const std::uint32_t bundle = up_[lower];
      step(Step{bundle, &lower == &from});
      lower = bundles_[bundle].upper;
    }
  }

  /// Returns all shortest routes between two leaves. Throws TopologyError where there is none.
  std::vector<Route> routes(std::uint32_t from_leaf, std::uint32_t to_leaf) const;

  /// Returns, for each step of its route, the cable on which a flow with this hash goes: up by the hash, down on the cable from
  /// the spine and core that it came to. It never chooses dead cables.
  std::vector<std::uint32_t> cables_on(const Route& route, std::uint64_t hash) const;

  bool is_dead(std::uint32_t bundle, std::uint32_t cable) const { return share_left(bundle, cable) == 0; }
  double share_left(std::uint32_t bundle, std::uint32_t cable) const;  ///< of the cable's speed
  BytesPerSecond capacity(std::uint32_t bundle) const;                 ///< of all its cables

  /// Returns the bytes/s that the NICs of the lower half of the nodes can send to those of the upper half, `port` each at most.
  BytesPerSecond bisection(BytesPerSecond port) const;

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  struct Graph;

  FabricSpec spec_;
  std::int64_t nics_per_node_ = 0, nics_ = 0;
  std::vector<Switch> switches_;
  std::shared_ptr<const Graph> graph_;  ///< an edge for each bundle that still carries something
  std::vector<Bundle> bundles_;
  std::vector<std::uint32_t> custom_leaf_;                                     ///< by NIC, of a custom fabric
  std::vector<std::uint32_t> up_;                                              ///< by switch: its bundle up
  std::unordered_map<std::uint32_t, std::map<std::uint32_t, double>> faults_;  ///< bundle, cable: share left
  bool is_tree_ = true;
  struct KnownRoutes {
    std::mutex lock;  ///< several threads may lay communicators
    std::unordered_map<std::uint64_t, std::vector<Route>> between;
  };
  std::shared_ptr<KnownRoutes> known_routes_ = std::make_shared<KnownRoutes>();  ///< of what is no tree

  std::uint32_t add_switch(std::string name, int level);
  void add_bundle(std::string name, Tier tier, std::uint32_t lower, std::uint32_t upper, std::int64_t cables,
                  BytesPerSecond total);
  void build_fat_tree(BytesPerSecond port);
  void build_dragonfly_plus(BytesPerSecond port);
  void build_custom(double efficiency);
  std::int64_t leaf_count() const;
  std::uint32_t add_leaves();
  void break_links(std::span<const LinkFault> faults);
  void connect();
  void check_connected() const;
  Route tree_route(std::uint32_t from, std::uint32_t to) const;
  std::vector<Route> search(std::uint32_t from, std::uint32_t to) const;
  std::uint32_t pick(std::uint32_t first, std::uint32_t count, std::uint32_t bundle, std::uint32_t mirror,
                     std::uint64_t hash) const;
};

}  // namespace tandem::topology
