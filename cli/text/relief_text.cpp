#include "cli/text/relief_text.h"

#include <spdlog/fmt/fmt.h>

#include "runtime/base/quantities.h"

namespace tandem::cli {
namespace {

std::vector<TextCell> row_of(const Relief& relief) {
  return {{gigabytes(relief.peak), relief.fits ? Style::green : Style::red},
          {duration(relief.step_time)},
          {relief.fits ? "fits" : "does not fit"},
          {set_options(relief.change)}};
}

Table table_of(const std::vector<Relief>& reliefs) {
  using Kind = Column::Kind;
  Table table({{"GB"}, {"step time"}, {"", Kind::name}, {"", Kind::note}});
  for (const Relief& relief : reliefs) table.add(row_of(relief));
  return table;
}

}  // namespace

void add_relief(Page& page, const ReliefResult& relief) {
  if (!relief.alone.empty()) page.heading("What would relieve it, each alone").table(table_of(relief.alone));
  const std::string counts = fmt::format("{} combinations bounded, {} simulated", relief.tried, relief.simulated);
  if (relief.plan)
    page.heading("What makes it fit: " + counts).table(table_of({*relief.plan}));
  else if (relief.least)
    page.heading("Nothing makes it fit: " + counts + "; the least memory takes").table(table_of({*relief.least}));
  else
    page.heading("Nothing makes it fit: " + counts);
}

std::string to_text(const ReliefResult& relief, const Screen& screen) {
  Page page(screen);
  add_relief(page, relief);
  return page.text();
}

}  // namespace tandem::cli
