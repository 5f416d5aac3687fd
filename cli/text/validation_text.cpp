#include "cli/text/validation_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"

namespace tandem::cli {
namespace {

/// Where all rows are alike in something, there is nothing more to say of it.
bool repeats_total(const Stratum& stratum, const std::vector<Stratum>& strata) {
  const auto is_alike = [&](const Stratum& other) { return other.set == stratum.set && other.by == stratum.by; };
  return stratum.by != "all" && std::ranges::count_if(strata, is_alike) == 1;
}

void put_strata(Page& page, const std::vector<Stratum>& strata, const std::string& set, const std::string& heading) {
  Table table({{"rows of", Column::Kind::name},
               {"rows"},
               {"sources", Column::Kind::number, 1},
               {"median"},
               {"mean", Column::Kind::number, 2},
               {"90th"},
               {"bias"},
               {"in interval", Column::Kind::number, 3}});
  for (const Stratum& stratum : strata) {
    if (stratum.set != set || repeats_total(stratum, strata)) continue;
    const Score& s = stratum.score;
    const bool total = stratum.by == "all";
    table.add({{(total ? "" : "  ") + stratum.name, total ? Style::strong : Style::plain},
               {std::to_string(s.rows)},
               {std::to_string(s.sources)},
               {percent(s.median), Style::strong},
               {percent(s.mean)},
               {percent(s.p90)},
               {percent_change(s.bias)},
               {percent(s.coverage)}});
  }
  if (!table.empty()) page.heading(heading).table(table);
}

void put_ratios(Page& page, const std::vector<Ratio>& ratios) {
  Table table(
      {{"runs that differ in", Column::Kind::name}, {"pairs"}, {"sources", Column::Kind::number, 1}, {"median"}, {"90th"}});
  for (const RatioScore& axis : score_ratios(ratios))
    table.add({{"  " + axis.axis},
               {std::to_string(axis.score.rows)},
               {std::to_string(axis.score.sources)},
               {percent(axis.score.median), Style::strong},
               {percent(axis.score.p90)}});
  if (!table.empty()) page.heading("Ratios of two runs of one source: |predicted / measured - 1|").table(table);
}

void put_cross_validation(Page& page, const std::vector<CrossValidation>& parts) {
  Table table({{"rows", Column::Kind::name}, {"fitted to all"}, {"to other sources"}});
  for (const CrossValidation& part : parts)
    table.add({{"  " + part.name}, {percent(part.fitted)}, {percent(part.left_out), Style::strong}});
  if (!table.empty()) page.heading("Cross-validation: median error with one speed fitted for each GPU").table(table);
}

void put_memory(Page& page, const MemoryScore& memory) {
  const FitsTable& fits = memory.fits;
  page.heading("Memory");
  const auto put = [&](const std::string& of, std::size_t rows, const Score& score) {
    if (rows > 0)
      page.line(fmt::format("{} of {} rows: median error {}, 90th percentile {}, bias {}", of, rows, percent(score.median),
                            percent(score.p90), percent_change(score.bias)),
                Style::plain, 2);
  };
  put("peaks", memory.rows.size(), memory.score);
  for (std::size_t i = 0; i < memory_figure_count; ++i)
    put(std::string("  ") + std::string(name_of(static_cast<MemoryFigure>(i))), memory.by_figure[i].rows, memory.by_figure[i]);
  page.line(fmt::format("{} runs fit, as they did; {} do not, though they ran", fits.ran_fits, fits.ran_exceeds), Style::plain,
            2);
  if (fits.oom_fits + fits.oom_exceeds > 0)
    page.line(
        fmt::format("{} runs do not fit, as they did not; {} do, though they ran out of memory", fits.oom_exceeds, fits.oom_fits),
        Style::plain, 2);
}

void put_worst(Page& page, const std::vector<ValidatedRow>& rows) {
  constexpr std::size_t most = 10;
  std::vector<const ValidatedRow*> scored;
  for (const ValidatedRow& row : rows)
    if (row.error()) scored.push_back(&row);
  std::ranges::stable_sort(scored, std::greater(), [](const ValidatedRow* row) { return std::abs(*row->error()); });
  scored.resize(std::min(scored.size(), most));
  if (scored.empty()) return;
  Table table({{"id", Column::Kind::name}, {"measured"}, {"predicted"}, {"error"}, {"", Column::Kind::note}});
  for (const ValidatedRow* row : scored)
    table.add({{row->id},
               {duration(*row->measured)},
               {duration(row->prediction->step_time)},
               {percent_change(*row->error()), Style::strong},
               {note_of(*row), Style::faint}});
  page.heading("The rows that are off most").table(table);
}

void put_unsimulated(Page& page, const std::vector<ValidatedRow>& rows) {
  Table table({{"id", Column::Kind::name}, {"", Column::Kind::note}});
  for (const ValidatedRow& row : rows)
    if (!row.prediction) table.add({{row.id}, {row.reason}});
  if (!table.empty()) page.heading("Not simulated").table(table);
}

}  // namespace

std::string to_text(const Validation& validation, const Screen& screen) {
  Page page(screen);
  const auto simulated =
      std::ranges::count_if(validation.rows, [](const ValidatedRow& row) { return row.prediction.has_value(); });
  page.line(fmt::format("{} of {} runs simulated", simulated, validation.rows.size()));
  put_strata(page, validation.strata, "all", "|predicted / measured - 1|, each source weighing the same");
  put_strata(page, validation.strata, "core", "The same for the rows that are core");
  put_ratios(page, validation.ratios);
  put_cross_validation(page, validation.cross_validation);
  put_memory(page, validation.memory);
  put_worst(page, validation.rows);
  put_unsimulated(page, validation.rows);
  return page.text();
}

}  // namespace tandem::cli
