#include "cli/text/place_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"
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
    const bool has_time = candidate.simulated && candidate.judgement.step_time > 0;
    table.add({{candidate.name},
               {duration(candidate.load.slowest)},
               {duration(candidate.load.spread)},
               {has_time ? duration(candidate.judgement.step_time) : "-", is_best ? Style::strong : Style::plain},
               {is_best ? "taken" : candidate.judgement.message, Style::faint}});
  }
  return table;
}

Table tier_table(const PlacementReport& report) {
  Table table(
      {{"tier", Kind::name}, {"links", Kind::number, 1}, {"GB packed"}, {"GB found"}, {"slowest packed"}, {"slowest found"}});
  for (std::size_t i = 0; i < report.packed.size(); ++i) {
    const TierLoad& before = report.packed[i];
    const TierLoad& after = report.found[i];
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

Table family_table(const PlacementReport& report) {
  Table table({{"family", Kind::name}, {"packed", Kind::name}, {"found", Kind::name}, {"lower"}, {"higher"}});
  for (const PlacementReport::Family& family : report.families)
    table.add({{family.name},
               {reaches(family.packed)},
               {reaches(family.found)},
               {std::to_string(family.lower)},
               {std::to_string(family.higher)}});
  return table;
}

}  // namespace

std::string to_text(const PlacementReport& report, const Screen& screen) {
  const PlacementSearch& search = report.search;
  const Seconds before = search.packed().judgement.step_time, after = search.found().judgement.step_time;
  Page page(screen);
  page.line(fmt::format("{}: {} ranks on {} of {} free nodes, of {} in the cluster", report.scenario, report.ranks, report.blocks,
                        report.free, report.nodes),
            Style::strong);
  if (search.best == 0)
    page.line(fmt::format("step time {}, packed: no placement that was found is faster", duration(before)));
  else
    page.line(fmt::format("step time {} instead of {} packed: {} steps in the same time", duration(after), duration(before),
                          percent_change(report.gain())));
  page.heading("Placements").table(candidate_table(search));
  page.line("slowest link: bytes / capacity of the worst between nodes in a step; spread: root of the mean square over all",
            Style::faint, 2);
  page.heading("Links between nodes, per step").table(tier_table(report));
  if (!report.families.empty())
    page.heading("Communicators over several nodes, and how far up they reach").table(family_table(report));
  return page.text();
}

}  // namespace tandem::cli
