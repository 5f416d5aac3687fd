#include "cli/topology_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tandem {
namespace {

constexpr double giga = 1e9;
constexpr double micro = 1e-6;

/// Four digits are more than anybody compares.
std::string number(double value) { return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value); }

void line(std::string& out, std::string_view what, std::int64_t count, const std::string& note = "") {
  out += fmt::format("  {:<16}{:>10}{}{}\n", what, count, note.empty() ? "" : "   ", note);
}

std::string fabric_line(const FabricSpec& fabric) {
  std::string text;
  switch (fabric.kind) {
    case FabricSpec::Kind::fat_tree:
      text = fmt::format("fat tree of {} tiers", fabric.tiers);
      break;
    case FabricSpec::Kind::dragonfly_plus:
      text = "dragonfly+";
      break;
    case FabricSpec::Kind::one_switch:
      return "one switch that never blocks";
    case FabricSpec::Kind::custom:
      text = "switches as listed";
      break;
  }
  if (fabric.kind != FabricSpec::Kind::custom) text += fabric.rail_optimized ? ", rail-optimised" : ", without rails";
  return text + (fabric.routing == Routing::ecmp ? fmt::format(", ECMP with {} flows per connection", fabric.flows)
                                                 : ", adaptive routing (ideal)");
}

std::string switches(const TopologyReport& report) {
  const Inventory& inventory = report.inventory;
  const bool groups = report.cluster.fabric.kind == FabricSpec::Kind::dragonfly_plus;
  std::string out;
  line(out, "leaf switches", inventory.leaves);
  if (inventory.spines > 0) {
    const std::string note = inventory.pods > 1 ? fmt::format("in {} {}, {} in each", inventory.pods, groups ? "groups" : "pods",
                                                              inventory.spines / inventory.pods)
                                                : "";
    line(out, "spine switches", inventory.spines, note);
  }
  if (inventory.cores > 0)
    line(out, "core switches", inventory.cores, inventory.pods > 0 ? "or fewer, each with several cables of a pod" : "");
  return out;
}

std::string links(const Inventory& inventory) {
  std::string out = "\nLinks, per direction\n";
  out += fmt::format("  {:<8}{:>10}{:>10}{:>16}{:>12}{:>18}\n", "tier", "ports", "cables", "GB/s of a port", "TB/s",
                     "oversubscribed");
  for (const TierInventory& tier : inventory.tiers) {
    out += fmt::format("  {:<8}{:>10}{:>10}{:>16}{:>12}{:>18}\n", name_of(tier.tier), tier.ports, tier.cables,
                       number(tier.total / static_cast<double>(tier.ports) / giga), number(tier.total / giga / 1000),
                       tier.oversubscription > 0 ? number(tier.oversubscription) + " : 1" : "-");
  }
  if (inventory.full_bisection > 0)
    out += fmt::format("  bisection: {} TB/s, {:.1f} % of what the NICs of half the nodes send\n",
                       number(inventory.bisection / giga / 1000), 100 * inventory.bisection / inventory.full_bisection);
  return out;
}

template <typename T>
std::string span(const CommunicatorRow::Span<T>& span, double unit) {
  const std::string least = number(static_cast<double>(span.least) / unit), most = number(static_cast<double>(span.most) / unit);
  return least == most ? least : least + "-" + most;
}

std::string rate(const std::optional<CommunicatorRow::Span<BytesPerSecond>>& rate) { return rate ? span(*rate, giga) : "-"; }

std::string communicators(const std::vector<CommunicatorRow>& rows) {
  constexpr const char* format = "  {:<18}{:>8}{:>8}{:>7}  {:<6}{:>8}{:>7}{:>8}{:>8}{:>8}{:>13}{:>13}{:>10}\n";
  std::string out = "\nCommunicators, the links that one of them crosses, and the GB/s that it gets\n";
  out += fmt::format(fmt::runtime(format), "family", "count", "ranks", "nodes", "reach", "nvlink", "pcie", "nic", "leaf", "spine",
                     "alone", "together", "hop us");
  for (const CommunicatorRow& row : rows) {
    const auto crossed = [&](Tier tier) { return span(row.links[static_cast<std::size_t>(tier)], 1); };
    out += fmt::format(fmt::runtime(format), row.family, row.communicators, row.ranks, row.nodes, name_of(row.reach),
                       crossed(Tier::nvlink), crossed(Tier::pcie), crossed(Tier::nic), crossed(Tier::leaf), crossed(Tier::spine),
                       rate(row.alone), rate(row.together), span(row.hop, micro));
  }
  if (rows.empty()) return "\nNo communicators: one rank alone\n";
  return out + "  together: all of the family at once; reach: the highest switches that they cross\n";
}

}  // namespace

TopologyReport report_topology(const Scenario& scenario) {
  return {.scenario = scenario.name,
          .cluster = scenario.cluster,
          .inventory = take_inventory(Cluster(scenario.cluster)),
          .communicators = report_mesh(scenario),
          .warnings = scenario.warnings};
}

std::string to_text(const TopologyReport& report) {
  const ClusterSpec& spec = report.cluster;
  const Inventory& inventory = report.inventory;
  std::string out = fmt::format("{}: {}, {} x {}\n\n", report.scenario, spec.name, inventory.gpus, spec.gpu.name);
  line(out, "nodes", inventory.nodes,
       fmt::format("of {} GPUs behind NVSwitches{} and {} NICs", std::min(spec.gpus_per_node, inventory.gpus),
                   spec.nvswitch_planes > 1 ? fmt::format(" in {} planes", spec.nvswitch_planes) : "", spec.nics_per_node));
  if (inventory.nics > 0) out += switches(report) + "  fabric: " + fabric_line(spec.fabric) + "\n";
  return out + links(inventory) + communicators(report.communicators);
}

}  // namespace tandem
