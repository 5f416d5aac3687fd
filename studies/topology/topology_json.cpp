#include <array>
#include <nlohmann/json.hpp>

#include "scenarios/spec/names.h"
#include "studies/topology/topology_summary.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array fabric_kinds{"fat-tree", "dragonfly-plus", "one-switch", "custom"};

template <typename T>
Json span(const CommunicatorRow::Span<T>& span) {
  return Json::array({span.least, span.most});
}

Json of_tier(const TierInventory& tier) {
  Json json = {{"tier", name_of(tier.tier)}, {"ports", tier.ports}, {"cables", tier.cables}, {"total_Bps", tier.total}};
  json["oversubscription"] = tier.oversubscription > 0 ? Json(tier.oversubscription) : Json(nullptr);
  return json;
}

Json of_row(const CommunicatorRow& row) {
  Json links = Json::object();
  for (std::size_t tier = 0; tier < tier_count; ++tier) links[name_of(static_cast<Tier>(tier))] = span(row.links[tier]);
  return {{"family", row.family},
          {"axis", name_of(row.axis)},
          {"communicators", row.communicators},
          {"ranks", row.ranks},
          {"nodes", row.nodes},
          {"reach", name_of(row.reach)},
          {"links", links},
          {"alone_Bps", row.alone ? span(*row.alone) : Json(nullptr)},
          {"together_Bps", row.together ? span(*row.together) : Json(nullptr)},
          {"hop_latency_s", span(row.hop)}};
}

}  // namespace

std::string to_json(const TopologySummary& summary) {
  const ClusterSpec& spec = summary.cluster;
  const Inventory& inventory = summary.inventory;
  Json tiers = Json::array(), rows = Json::array();
  for (const TierInventory& tier : inventory.tiers) tiers.push_back(of_tier(tier));
  for (const CommunicatorRow& row : summary.communicators) rows.push_back(of_row(row));
  const bool halves = inventory.full_bisection > 0;
  const Json json = {{"scenario", summary.scenario},
                     {"cluster",
                      {{"name", spec.name},
                       {"gpu", spec.gpu.name},
                       {"gpus", inventory.gpus},
                       {"nodes", inventory.nodes},
                       {"gpus_per_node", spec.gpus_per_node},
                       {"node_links", name_in(node_links_names, spec.node_links)},
                       {"nvswitch_planes", spec.nvswitch_planes},
                       {"nics", inventory.nics}}},
                     {"fabric",
                      {{"kind", fabric_kinds[static_cast<std::size_t>(spec.fabric.kind)]},
                       {"tiers", spec.fabric.tiers},
                       {"rail_optimized", spec.fabric.rail_optimized},
                       {"routing", name_in(flow_routing_names, spec.fabric.routing)},
                       {"leaves", inventory.leaves},
                       {"pods", inventory.pods},
                       {"spines", inventory.spines},
                       {"cores", inventory.cores},
                       {"bisection_Bps", halves ? Json(inventory.bisection) : Json(nullptr)},
                       {"bisection_share", halves ? Json(inventory.bisection / inventory.full_bisection) : Json(nullptr)}}},
                     {"links", tiers},
                     {"communicators", rows},
                     {"warnings", summary.warnings}};
  return json.dump(1) + "\n";
}

}  // namespace tandem::studies
