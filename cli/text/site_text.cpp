#include "cli/text/site_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"
#include "studies/step/step_interval.h"
#include "studies/validate/score.h"

namespace tandem::cli {
namespace {

template <typename Of>
double median(const std::vector<FittedRun>& runs, const Of& of) {
  std::vector<WeightedValue> values;
  for (const FittedRun& run : runs) values.push_back({std::abs(of(run)), 1});
  return weighted_quantile(std::move(values), 0.5);
}

void put_site(Page& page, const Site& site) {
  page.line(fmt::format("{} {} of {} under {}", site.runs, site.runs == 1 ? "run" : "runs", site.gpu, site.framework));
  Table table({{"", Column::Kind::name}, {"learnt"}, {"give or take"}, {"", Column::Kind::note}});
  const auto& [kk, kc, ko, cc, co, oo] = site.covariance;
  const auto factor = [](double value) { return fmt::format("{:.3f}", value); };
  const auto doubt = [](double variance) { return percent(std::expm1(nine_in_ten * std::sqrt(variance))); };
  table.add({{"  kernels"}, {factor(site.kernels), Style::strong}, {doubt(kk)}, {"times as long as presets say", Style::faint}});
  table.add({{"  communication"},
             {factor(site.communication), Style::strong},
             {doubt(cc)},
             {"times as long as presets say", Style::faint}});
  table.add({{"  overhead"},
             {duration(site.overhead), Style::strong},
             {duration(nine_in_ten * std::sqrt(oo))},
             {"of each step, before its first kernel", Style::faint}});
  page.table(table);
}

void put_runs(Page& page, const std::vector<FittedRun>& runs) {
  Table table({{"run", Column::Kind::name},
               {"measured"},
               {"presets"},
               {"error"},
               {"learnt"},
               {"error"},
               {"left out"},
               {"give or take", Column::Kind::number, 1}});
  for (const FittedRun& run : runs)
    table.add({{run.id},
               {duration(run.measured)},
               {duration(run.preset)},
               {percent_change(run.preset_error())},
               {duration(run.learnt)},
               {percent_change(run.learnt_error())},
               {percent_change(run.error_left_out), Style::strong},
               {percent(run.preset_width) + " -> " + percent(run.learnt_width)}});
  page.empty_line().table(table);
  page.line(fmt::format("median error {} by the presets, {} with all runs, {} with the run left out; give or take {}, was {}",
                        percent(median(runs, [](const FittedRun& run) { return run.preset_error(); })),
                        percent(median(runs, [](const FittedRun& run) { return run.learnt_error(); })),
                        percent(median(runs, [](const FittedRun& run) { return run.error_left_out; })),
                        percent(median(runs, [](const FittedRun& run) { return run.learnt_width; })),
                        percent(median(runs, [](const FittedRun& run) { return run.preset_width; }))));
}

}  // namespace

std::string to_text(const SiteFit& fit, const Screen& screen) {
  Page page(screen);
  put_site(page, fit.site);
  put_runs(page, fit.runs);
  for (const std::string& reason : fit.left_out) page.line("says nothing: " + reason);
  return page.text();
}

}  // namespace tandem::cli
