#include "cli/text/topology_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"
#include "runtime/base/si.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

/// Four digits are more than anybody compares.
std::string number(double value) { return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value); }

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
  return text + (fabric.routing == FlowRouting::ecmp ? fmt::format(", ECMP with {} flows per connection", fabric.flows)
                                                     : ", adaptive routing (ideal)");
}

std::string joined(const ClusterSpec& spec) {
  if (spec.node_links == NodeLinks::mesh) return "in a mesh";
  return "behind NVSwitches" + (spec.nvswitch_planes > 1 ? fmt::format(" in {} planes", spec.nvswitch_planes) : "");
}

Table counts(const TopologySummary& summary) {
  const Inventory& inventory = summary.inventory;
  const ClusterSpec& spec = summary.cluster;
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::note}});
  const auto add = [&](const std::string& what, std::int64_t count, const std::string& note = "") {
    table.add({{what}, {std::to_string(count), Style::strong}, {note, Style::faint}});
  };
  add("nodes", inventory.nodes,
      fmt::format("of {} GPUs {} and {} NICs", std::min(spec.gpus_per_node, inventory.gpus), joined(spec), spec.nics_per_node));
  if (inventory.nics == 0) return table;
  const bool groups = spec.fabric.kind == FabricSpec::Kind::dragonfly_plus;
  add("leaf switches", inventory.leaves);
  if (inventory.spines > 0) {
    const std::string note = inventory.pods > 1 ? fmt::format("in {} {}, {} in each", inventory.pods, groups ? "groups" : "pods",
                                                              inventory.spines / inventory.pods)
                                                : "";
    add("spine switches", inventory.spines, note);
  }
  if (inventory.cores > 0)
    add("core switches", inventory.cores, inventory.pods > 0 ? "or fewer, each with several cables of a pod" : "");
  return table;
}

Table links(const Inventory& inventory) {
  Table table({{"tier", Kind::name},
               {"ports", Kind::number, 2},
               {"cables", Kind::number, 1},
               {"GB/s of a port"},
               {"TB/s"},
               {"oversubscribed"}});
  for (const TierInventory& tier : inventory.tiers) {
    table.add({{std::string(name_of(tier.tier))},
               {std::to_string(tier.ports)},
               {std::to_string(tier.cables)},
               {number(tier.total / static_cast<double>(tier.ports) / giga)},
               {number(tier.total / giga / 1000)},
               {tier.oversubscription > 0 ? number(tier.oversubscription) + " : 1" : "-"}});
  }
  return table;
}

template <typename T>
std::string span(const CommunicatorRow::Span<T>& span, double unit) {
  const std::string least = number(static_cast<double>(span.least) / unit), most = number(static_cast<double>(span.most) / unit);
  return least == most ? least : least + "-" + most;
}

std::string rate(const std::optional<CommunicatorRow::Span<BytesPerSecond>>& rate) { return rate ? span(*rate, giga) : "-"; }

Table communicators(const std::vector<CommunicatorRow>& rows) {
  Table table({{"family", Kind::name},
               {"count", Kind::number, 7},
               {"ranks"},
               {"nodes", Kind::number, 8},
               {"reach", Kind::name},
               {"nvlink", Kind::number, 5},
               {"pcie", Kind::number, 2},
               {"nic", Kind::number, 6},
               {"leaf", Kind::number, 4},
               {"spine", Kind::number, 3},
               {"alone"},
               {"together"},
               {"hop us", Kind::number, 1}});
  for (const CommunicatorRow& row : rows) {
    const auto crossed = [&](Tier tier) { return TextCell{span(row.links[static_cast<std::size_t>(tier)], 1)}; };
    table.add({{row.family},
               {std::to_string(row.communicators)},
               {std::to_string(row.ranks)},
               {std::to_string(row.nodes)},
               {std::string(name_of(row.reach))},
               crossed(Tier::nvlink),
               crossed(Tier::pcie),
               crossed(Tier::nic),
               crossed(Tier::leaf),
               crossed(Tier::spine),
               {rate(row.alone)},
               {rate(row.together), Style::strong},
               {span(row.hop, micro)}});
  }
  return table;
}

}  // namespace

std::string to_text(const TopologySummary& summary, const Screen& screen) {
  const ClusterSpec& spec = summary.cluster;
  const Inventory& inventory = summary.inventory;
  Page page(screen);
  page.line(fmt::format("{}: {}, {} x {}", summary.scenario, spec.name, inventory.gpus, spec.gpu.name), Style::strong)
      .empty_line()
      .table(counts(summary));
  if (inventory.nics > 0) page.line("fabric: " + fabric_line(spec.fabric), Style::plain, 2);
  page.heading("Links, per direction").table(links(inventory));
  if (inventory.full_bisection > 0)
    page.line(fmt::format("bisection: {} TB/s, {} of what the NICs of half the nodes send",
                          number(inventory.bisection / giga / 1000), percent(inventory.bisection / inventory.full_bisection)),
              Style::plain, 2);
  if (summary.communicators.empty()) return page.empty_line().line("No communicators: one rank alone").text();
  return page.heading("Communicators, the links that one of them crosses, and the GB/s that it gets")
      .table(communicators(summary.communicators))
      .line("together: all of the family at once; reach: the highest switches that they cross", Style::faint, 2)
      .text();
}

}  // namespace tandem::cli
