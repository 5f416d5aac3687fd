#include "cli/text/place_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"
#include "runtime/base/host_list.h"
#include "runtime/base/quantities.h"
#include "runtime/base/si.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

std::string reaches(const std::map<Reach, std::int64_t>& counts) {
  std::string text;
  for (const auto& [reach, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name_of(reach));
  return text;
}

Table candidate_table(const PlacementSearch& search) {
  Table table({{"placement", Kind::name}, {"slowest link"}, {"spread", Kind::number, 1}, {"step time"}, {"", Kind::note}});
  for (const PlacementCandidate& candidate : search.candidates) {
    const bool is_best = &candidate == &search.found();
    const StepResult* step = candidate.step();
    table.add({{candidate.name},
               {duration(candidate.load.slowest)},
               {duration(candidate.load.spread)},
               {step != nullptr ? duration(step->step_time) : "-", is_best ? Style::strong : Style::plain},
               {is_best ? "taken" : candidate.message(), Style::faint}});
  }
  return table;
}

Table tier_table(const PlacementResult& result) {
  Table table(
      {{"tier", Kind::name}, {"links", Kind::number, 1}, {"GB packed"}, {"GB found"}, {"slowest packed"}, {"slowest found"}});
  for (std::size_t i = 0; i < result.packed.size(); ++i) {
    const TierLoad& before = result.packed[i];
    const TierLoad& after = result.found[i];
    if (before.links == 0) continue;
    table.add({{name_of(before.tier)},
               {std::to_string(before.links)},
               {fmt::format("{:.2f}", before.bytes / giga)},
               {fmt::format("{:.2f}", after.bytes / giga), Style::strong},
               {duration(before.slowest)},
               {duration(after.slowest), Style::strong}});
  }
  return table;
}

Table family_table(const PlacementResult& result) {
  Table table({{"family", Kind::name}, {"packed", Kind::name}, {"found", Kind::name}, {"lower"}, {"higher"}});
  for (const PlacementResult::Family& family : result.families)
    table.add({{family.name},
               {reaches(family.packed)},
               {reaches(family.found)},
               {std::to_string(family.lower)},
               {std::to_string(family.higher)}});
  return table;
}

}  // namespace

std::string to_text(const PlacementResult& result, const Screen& screen) {
  const PlacementSearch& search = result.search;
  const Seconds before = search.packed_time(), after = search.found_time();
  Page page(screen);
  page.line(fmt::format("{}: {} ranks on {} of {} free nodes, of {} in the cluster", result.scenario, result.ranks, result.blocks,
                        result.free, result.nodes),
            Style::strong);
  if (search.best == 0)
    page.line(fmt::format("step time {}, packed: no placement that was found is faster", duration(before)));
  else
    page.line(fmt::format("step time {} instead of {} packed: {} steps in the same time", duration(after), duration(before),
                          percent_change(result.gain())));
  std::vector<std::string> hosts;
  for (const PlacedJob::HostSlots& host : result.hosts) hosts.push_back(host.host);
  if (!hosts.empty()) page.line("hosts in the order of the ranks: " + host_list_of(hosts));
  page.heading("Placements").table(candidate_table(search));
  page.line("slowest link: bytes / capacity of the worst between nodes in a step; spread: root of the mean square over all",
            Style::faint, 2);
  page.heading("Links between nodes, per step").table(tier_table(result));
  if (!result.families.empty())
    page.heading("Communicators over several nodes, and how far up they reach").table(family_table(result));
  return page.text();
}

}  // namespace tandem::cli
