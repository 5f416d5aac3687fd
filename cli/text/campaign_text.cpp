#include "cli/text/campaign_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"
#include "runtime/base/nearest.h"
#include "runtime/base/quantities.h"
#include "runtime/base/si.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

/// "15.60T", "842.1B"
std::string tokens_text(double tokens) {
  constexpr double billion = 1e9, trillion = 1e12, million = 1e6;
  if (tokens >= trillion) return fmt::format("{:.2f}T", tokens / trillion);
  if (tokens >= billion) return fmt::format("{:.2f}B", tokens / billion);
  return fmt::format("{:.2f}M", tokens / million);
}

std::string days_text(double days) { return fmt::format("{:.{}f}", days, days < 10 ? 2 : 1); }

std::string whole(double number) { return grouped(std::llround(number)); }

std::string title(const CampaignForecast& f) {
  const std::string aim = f.asked_tokens ? tokens_text(*f.asked_tokens) + " tokens" : days_text(*f.asked_days) + " days";
  return fmt::format("{}: {} on {} x {}, {} nodes and {} spare ({})", f.scenario, aim, f.gpus, f.gpu, f.nodes, f.spare_nodes,
                     f.preset);
}

Table figures(const CampaignForecast& f) {
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::note}});
  const auto add = [&](const std::string& what, const std::string& value, const std::string& note = "") {
    table.add({{what}, {value, Style::strong}, {note, Style::faint}});
  };
  if (f.asked_tokens) {
    add("days", days_text(f.days.mean),
        fmt::format("{} to {} by chance; {} to {} with what the step time may be off, each in nine cases of ten",
                    days_text(f.days.p5), days_text(f.days.p95), days_text(f.days_with_step.p5),
                    days_text(f.days_with_step.p95)));
  } else {
    add("tokens", tokens_text(f.tokens.mean),
        fmt::format("{} to {} by chance; {} to {} with what the step time may be off, each in nine cases of ten",
                    tokens_text(f.tokens.p5), tokens_text(f.tokens.p95), tokens_text(f.tokens_with_step.p5),
                    tokens_text(f.tokens_with_step.p95)));
  }
  add("GPU-hours", whole(f.gpu_hours(f.days.mean)),
      f.asked_tokens ? fmt::format("{} to {} with what the step time may be off; spare nodes do not count",
                                   whole(f.gpu_hours(f.days_with_step.p5)), whole(f.gpu_hours(f.days_with_step.p95)))
                     : "spare nodes do not count");
  add("goodput", percent(f.goodput.mean), fmt::format("{} to {}", percent(f.goodput.p5), percent(f.goodput.p95)));
  add("interruptions", fmt::format("{:.0f}", f.interruptions.mean),
      fmt::format("{:.0f} to {:.0f}; one in {} of training", f.interruptions.p5, f.interruptions.p95, rounded(f.mtbf())));
  add("step time", duration(f.step_time),
      f.slow_step_time ? fmt::format("{} with a slow node", duration(*f.slow_step_time)) : "");
  return table;
}

Table parts(const CampaignForecast& f) {
  Table table({{"", Kind::name}, {"", Kind::number}, {"", Kind::number}, {"", Kind::bar}});
  const auto add = [&](const std::string& what, Seconds time, Style style) {
    const double share = time / f.times.total();
    table.add({{what}, {fmt::format("{:.1f} h", time / hour)}, {fmt::format("{:.2f} %", 100 * share)}, bar_of(share, style)});
  };
  add("training", f.times.training, Style::cyan);
  add("slow nodes", f.times.slow, Style::magenta);
  add("checkpoint stalls", f.times.checkpoint, Style::green);
  add("lost work", f.times.lost, Style::red);
  add("detection", f.times.detection, Style::yellow);
  add("restart", f.times.restart, Style::yellow);
  add("waiting for nodes", f.times.waiting, Style::yellow);
  return table;
}

Table interruptions(const CampaignForecast& f) {
  Table table({{"", Kind::name}, {"mean"}, {"one in"}});
  constexpr std::pair<Component, const char*> rows[] = {
      {Component::gpu, "GPU"}, {Component::node, "node"}, {Component::link, "link"}, {Component::software, "software"}};
  for (const auto& [component, name] : rows)
    if (const double rate = f.model.failures[component]; rate > 0)
      table.add({{name}, {fmt::format("{:.1f}", f.failures[component])}, {rounded(1 / rate)}});
  if (f.model.planned_rate > 0)
    table.add({{"planned stop"}, {fmt::format("{:.1f}", f.planned_stops)}, {rounded(1 / f.model.planned_rate)}});
  if (f.slow_found > 0) table.add({{"slow node found"}, {fmt::format("{:.1f}", f.slow_found)}, {""}});
  return table;
}

Table intervals(const CampaignForecast& f) {
  Table table({{"", Kind::name}, {"interval"}, {"steps"}, {"goodput"}, {"closed form"}, {"", Kind::note}});
  for (const IntervalForecast& row : f.intervals) {
    const char* note = row.name == "young"    ? "Young 1974"
                       : row.name == "daly"   ? "Daly 2006"
                       : row.name == "best"   ? "by search"
                       : row.name != "used"   ? ""
                       : f.interval_was_given ? "as given"
                                              : "the best";
    const Style style = row.name == "used" ? Style::strong : Style::plain;
    table.add({{row.name, style},
               {duration(row.interval)},
               {std::to_string(row.steps)},
               {fmt::format("{:.2f} %", 100 * row.goodput.mean), style},
               {fmt::format("{:.2f} %", 100 * row.expected_goodput)},
               {note, Style::faint}});
  }
  return table;
}

std::string checkpoint_line(const CampaignForecast& f) {
  const CheckpointTimes& times = f.model.checkpoint;
  return fmt::format("{:.2f} TB, {:.1f} bytes for each of {:.1f}B parameters; {} of stall{}, {} to load",
                     f.checkpoint_bytes / 1e12, f.checkpoint_bytes / static_cast<double>(f.parameters),
                     static_cast<double>(f.parameters) / 1e9, duration(times.stall),
                     f.asynchronous ? ", written " + duration(times.write) + " later" : "", duration(times.load));
}

}  // namespace

std::string to_text(const CampaignForecast& f, const Screen& screen) {
  Page page(screen);
  page.line(title(f), Style::strong).empty_line().table(figures(f));
  page.heading("Where the time goes (mean)").table(parts(f));
  page.heading("Interruptions").table(interruptions(f));
  page.heading("Checkpoints").line(checkpoint_line(f), Style::plain, 2).table(intervals(f));
  page.empty_line().line(fmt::format("{} campaigns played, seed {}", f.replicas, f.seed), Style::faint);
  return page.text();
}

}  // namespace tandem::cli
