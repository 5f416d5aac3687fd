#include "cli/text/explained_run_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"
#include "studies/validate/validation.h"

namespace tandem::cli {
namespace {

/// "other kernels"
std::string words_of(ErrorPart part) {
  std::string words(name_of(part));
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string plus_minus(double off_by) { return fmt::format("+-{}", percent(off_by)); }

void put_times(Page& page, const ExplainedRun& explained) {
  const Seconds step = explained.row.prediction->typical.step.step_time;
  constexpr double too_little = 0.002;
  Table table({{"", Column::Kind::name}, {"time"}, {"of step"}, {"could be off by"}, {"", Column::Kind::note}});
  Seconds little = 0;
  double little_off = 0;
  for (const ExplainedTime& time : explained.times) {
    if (time.time < too_little * step) {
      little += time.time;
      little_off += time.off_by;
      continue;
    }
    table.add({{time.name},
               {duration(time.time), Style::strong},
               {percent(time.time / step)},
               {time.part ? plus_minus(time.off_by) : ""},
               {time.part ? words_of(*time.part) : "as the kernels that are waited for", Style::faint}});
  }
  if (little > 0)
    table.add({{"the rest"}, {duration(little), Style::strong}, {percent(little / step)}, {plus_minus(little_off)}, {""}});
  const Interval& interval = explained.row.prediction->interval;
  const auto whole = [&](ErrorPart part, const char* why) {
    const double off_by = nine_in_ten * interval.parts[static_cast<std::size_t>(part)];
    if (off_by > 0) table.add({{words_of(part)}, {""}, {""}, {plus_minus(off_by)}, {why, Style::faint}});
  };
  whole(ErrorPart::framework, "what trainers do besides");
  whole(ErrorPart::unknown, "what runs like it were off by beyond all that, and what the row leaves open");
  page.heading("Where the predicted time goes, and what of the step each could be wrong by").table(table);
}

void put_nearest(Page& page, const ExplainedRun& explained) {
  if (!explained.nearest) {
    page.heading("No other run of the table was measured");
    return;
  }
  const NearestRun& nearest = *explained.nearest;
  page.heading("The nearest measured run: " + nearest.row.id);
  Table differences({{"", Column::Kind::name}, {"this run"}, {"that run"}});
  for (const RunDifference& difference : nearest.differences)
    differences.add({{"  " + difference.what}, {difference.here}, {difference.there}});
  if (differences.empty())
    page.line("alike in all that counts", Style::plain, 2);
  else
    page.table(differences);
  Table ratios({{"", Column::Kind::name}, {"measured"}, {"predicted"}, {"error"}});
  const auto shown = [](const std::optional<double>& value, auto text) { return value ? text(*value) : std::string("-"); };
  ratios.add({{"  " + nearest.row.id},
              {duration(*nearest.row.measured)},
              {duration(nearest.row.prediction->step_time)},
              {percent_change(*nearest.row.error()), Style::strong}});
  const std::optional<double> measured = explained.measured_ratio(), predicted = explained.predicted_ratio();
  const auto times = [](double ratio) { return fmt::format("{:.3f}", ratio); };
  ratios.add({{"  this run over it"},
              {shown(measured, times)},
              {shown(predicted, times)},
              {measured && predicted ? percent_change(*predicted / *measured - 1) : "", Style::strong}});
  page.empty_line().table(ratios);
  if (const auto like = explained.step_time_like_nearest())
    page.line(fmt::format("were this run off as that one, it would take {}", duration(*like)), Style::plain, 2);
}

}  // namespace

std::string to_text(const ExplainedRun& explained, const Screen& screen) {
  Page page(screen);
  const ValidatedRow& row = explained.row;
  if (!row.prediction) {
    page.line(fmt::format("{}: {}", row.id, note_of(row)));
    return page.text();
  }
  const Prediction& prediction = *row.prediction;
  const Interval& interval = prediction.interval;
  page.line(fmt::format(
      "{}: predicted {} give or take {}{}", row.id, duration(prediction.step_time),
      percent(interval.high / prediction.step_time - 1),
      row.measured ? fmt::format(", measured {} ({})", duration(*row.measured), percent_change(*row.error())) : std::string()));
  if (!row.notes.empty()) page.line(note_of(row), Style::faint, 2);
  put_times(page, explained);
  put_nearest(page, explained);
  return page.text();
}

}  // namespace tandem::cli
