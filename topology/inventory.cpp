#include "topology/inventory.h"

#include <algorithm>

#include "runtime/base/si.h"

namespace tandem::topology {
namespace {

/// Counts the links that are not the fabric's: those of GPUs, PCIe ports and NICs.
std::vector<TierInventory> node_tiers(const Cluster& cluster, BytesPerSecond wire) {
  std::vector<TierInventory> tiers{{.tier = Tier::nvlink}, {.tier = Tier::pcie}, {.tier = Tier::nic}};
  for (LinkId id = 0; id < cluster.first_fabric_link(); id += 2) {
    const Link link = cluster.link(id);
    TierInventory& tier = tiers[static_cast<std::size_t>(link.tier)];
    ++tier.ports, ++tier.cables;
    tier.total += link.capacity;
    if (link.tier == Tier::nic && link.capacity > 0)
      tier.oversubscription = std::max(tier.oversubscription, wire / link.capacity);
  }
  return tiers;
}

bool leads_up(const Fabric& fabric, const Fabric::Bundle& bundle) {
  return fabric.switches()[bundle.upper].level > fabric.switches()[bundle.lower].level;
}

/// Returns, by switch, the bandwidth at which NICs and lower switches can send to it.
std::vector<BytesPerSecond> from_below(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  std::vector<BytesPerSecond> below(fabric.switches().size(), 0);
  for (std::int64_t nic = 0; nic < cluster.nodes() * cluster.spec().nics_per_node; ++nic)
    below[fabric.leaf_of(nic)] += cluster.nic_capacity();
  for (const Fabric::Bundle& bundle : fabric.bundles()) {
    if (leads_up(fabric, bundle)) below[bundle.upper] += fabric.capacity(bundle.id);
  }
  return below;
}

/// Counts the uplinks of the leaves, or those of the spines.
TierInventory fabric_tier(const Fabric& fabric, Tier which, const std::vector<BytesPerSecond>& below) {
  TierInventory tier{.tier = which};
  std::vector<BytesPerSecond> up(below.size(), 0);
  for (const Fabric::Bundle& bundle : fabric.bundles()) {
    if (bundle.tier != which) continue;
    ++tier.ports;
    tier.cables += bundle.cables;
    tier.total += fabric.capacity(bundle.id);
    up[bundle.lower] += fabric.capacity(bundle.id);
    if (!leads_up(fabric, bundle)) up[bundle.upper] += fabric.capacity(bundle.id);  // groups that are joined directly
  }
  for (std::size_t s = 0; s < up.size(); ++s) {
    if (up[s] > 0) tier.oversubscription = std::max(tier.oversubscription, below[s] / up[s]);
  }
  return tier;
}

void count_switches(const ClusterSpec& spec, const Fabric& fabric, Inventory& inventory) {
  const bool written_down = spec.fabric.kind == FabricSpec::Kind::custom;
  std::vector<std::int64_t> ways(fabric.switches().size(), 1);
  for (const Fabric::Bundle& bundle : fabric.bundles()) {
    if (leads_up(fabric, bundle) && !written_down) ways[bundle.upper] = std::max<std::int64_t>(ways[bundle.upper], bundle.cables);
  }
  for (std::size_t number = 0; number < ways.size(); ++number) {
    const int level = fabric.switches()[number].level;
    (level == 0 ? inventory.leaves : level == 1 ? inventory.spines : inventory.cores) += ways[number];
    if (level == 1 && !written_down) ++inventory.pods;
  }
  if (inventory.pods == 1) inventory.cores = 0;
}

}  // namespace

Inventory take_inventory(const Cluster& cluster) {
  const ClusterSpec& spec = cluster.spec();
  const Fabric& fabric = cluster.fabric();
  Inventory inventory{.gpus = cluster.gpus(), .nodes = cluster.nodes(), .nics = cluster.nodes() * spec.nics_per_node};
  const BytesPerSecond wire = spec.nic_gbps * bytes_per_gbit * spec.nic_efficiency;
  inventory.tiers = node_tiers(cluster, wire);
  if (inventory.nics > 0) {
    count_switches(spec, fabric, inventory);
    const std::vector<BytesPerSecond> below = from_below(cluster);
    for (const Tier tier : {Tier::leaf, Tier::spine}) inventory.tiers.push_back(fabric_tier(fabric, tier, below));
    if (inventory.nodes > 1) {
      inventory.bisection = fabric.bisection(cluster.nic_capacity());
      const auto half = inventory.nodes / 2;
      inventory.full_bisection = static_cast<double>(half * spec.nics_per_node) * wire;
    }
  }
  std::erase_if(inventory.tiers,
                [&](const TierInventory& tier) { return tier.ports == 0 || (tier.tier == Tier::spine && inventory.pods == 1); });
  return inventory;
}

}  // namespace tandem::topology
