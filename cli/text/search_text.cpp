#include "cli/text/search_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "cli/terminal/page.h"
#include "runtime/base/nearest.h"
#include "runtime/base/quantities.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

/// Bytes as a person reads them where they decide: all digits too.
std::string bytes_text(Bytes bytes) { return fmt::format("{} bytes ({} GB)", grouped(bytes), gigabytes(bytes)); }

/// What the search is about, of a plan: "2.780 s", or "1.23 per million tokens".
std::string score_text(const SearchSpec& spec, const RatedPlan& rated) {
  switch (spec.objective) {
    case SearchObjective::step_time:
      return duration(rated.step.step_time);
    case SearchObjective::tokens_per_s_per_gpu:
      return fmt::format("{:.1f} tokens/s/GPU", 1 / rated.score);
    case SearchObjective::cost_per_million_tokens:
      return fmt::format("{:.4f} per million tokens", rated.score);
  }
  return {};
}

std::string share(Seconds part, const RatedPlan& rated) { return percent(part / rated.step.step_time); }

std::vector<Axis> exposed_axes(const std::vector<RatedPlan>& plans) {
  std::vector<Axis> axes;
  for (const Axis axis : communication_axes)
    if (std::ranges::any_of(plans, [&](const RatedPlan& rated) { return rated.step.parts.exposed_on(axis) > 0; }))
      axes.push_back(axis);
  return axes;
}

Table table_of(const std::vector<RatedPlan>& plans, const SearchSpec& spec, const PlanChoices& choices) {
  const bool by_time = spec.objective == SearchObjective::step_time;
  const bool many_sizes = spec.gpus.size() > 1;
  const std::vector<Axis> axes = exposed_axes(plans);
  std::vector<Column> columns{{"", Kind::number}};
  if (many_sizes) columns.push_back({"GPUs"});
  columns.push_back({"step time"});
  if (!by_time) columns.push_back({"score"});
  columns.push_back({"compute", Kind::number, 2});
  for (const Axis axis : axes) columns.push_back({"exposed " + std::string(name_of(axis)), Kind::number, 3});
  columns.push_back({"bubble", Kind::number, 1});
  columns.push_back({"GB"});
  columns.push_back({"plan", Kind::note});
  Table table(columns);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const RatedPlan& rated = plans[i];
    std::vector<TextCell> cells{{std::to_string(i + 1)}};
    if (many_sizes) cells.push_back({std::to_string(rated.plan.gpus)});
    cells.push_back({duration(rated.step.step_time), i == 0 ? Style::strong : Style::plain});
    if (!by_time) cells.push_back({score_text(spec, rated)});
    cells.push_back({share(rated.step.parts.compute(), rated)});
    for (const Axis axis : axes) cells.push_back({share(rated.step.parts.exposed_on(axis), rated)});
    cells.push_back({share(rated.step.parts.bubble, rated)});
    cells.push_back({gigabytes(rated.step.peak_memory())});
    cells.push_back({to_text(rated.plan, choices)});
    table.add(std::move(cells));
  }
  return table;
}

/// Two plans part by part, where they differ.
Table comparison(const RatedPlan& plan, const RatedPlan& winner, const std::string& name) {
  Table table({{"", Kind::name}, {name}, {"winner"}, {"difference"}});
  const auto add = [&](const std::string& what, Seconds a, Seconds b) {
    if (a > 0 || b > 0) table.add({{what}, {duration(a)}, {duration(b)}, {change_of(a - b)}});
  };
  add("step time", plan.step.step_time, winner.step.step_time);
  const TimeParts &parts = plan.step.parts, &best = winner.step.parts;
  add("compute", parts.compute(), best.compute());
  for (const Axis axis : communication_axes)
    add("exposed " + std::string(name_of(axis)), parts.exposed_on(axis), best.exposed_on(axis));
  add("bubble", parts.bubble, best.bubble);
  add("optimizer", parts.optimizer(), best.optimizer());
  return table;
}

std::string behind(const RatedPlan& plan, const RatedPlan& winner) { return percent_change(plan.score / winner.score - 1); }

void tell_constraints(Page& page, const Shortfall& lacks, const StepResult& step, const SearchSpec& spec) {
  if (lacks.memory > 0)
    page.line(fmt::format("memory: it takes {} of the {} that a plan may, and lacks {}", bytes_text(step.peak_memory()),
                          bytes_text(memory_limit(spec)), bytes_text(lacks.memory)),
              Style::red, 2);
  if (lacks.bubble > 0)
    page.line(fmt::format("bubble: {} of the step, allowed are {}", percent(step.parts.bubble / step.step_time),
                          percent(*spec.constraints.bubble)),
              Style::red, 2);
  if (lacks.exposed > 0)
    page.line(fmt::format("exposed communication: {} of the step, allowed are {}", percent(exposed_in_all(step) / step.step_time),
                          percent(*spec.constraints.exposed)),
              Style::red, 2);
}

}  // namespace

std::string to_text(const SearchResult& r, const SearchSpec& spec, const PlanChoices& choices, Seconds wall,
                    const Screen& screen) {
  Page page(screen);
  const SearchCounts& c = r.counts;
  page.line(fmt::format("{}: {} plans for {} GPUs", spec.name, grouped(static_cast<std::int64_t>(c.plans)),
                        spec.gpus.size() == 1 ? grouped(spec.gpus.front())
                                              : grouped(spec.gpus.front()) + " to " + grouped(spec.gpus.back())),
            Style::strong);
  if (!r.best.empty()) {
    page.heading("Best plans (parts of the step, mean over ranks; peak of memory)").table(table_of(r.best, spec, choices));
    if (!r.best_is_proven && r.ended_early)
      page.line("time was over: " +
                    (r.gap ? fmt::format("a plan that was not simulated may beat the first by {} at most", percent(*r.gap))
                           : "not every plan was bounded, so any may be better"),
                Style::yellow, 2);
    else if (!r.best_is_proven)
      page.line(fmt::format("plans left over may be better: the search ends after {} simulations", Search::most_for_winner),
                Style::yellow, 2);
    else if (r.proven == r.best.size())
      page.line("no plan of the space beats any of these", Style::faint, 2);
    else
      page.line(
          fmt::format("no plan of the space beats the first {}; below them some that were not simulated may stand", r.proven),
          Style::faint, 2);
    page.heading("Step time against memory (of the plans that were simulated)").table(table_of(r.pareto, spec, choices));
  }
  if (r.own && !r.best.empty()) {
    const RatedPlan& winner = r.best.front();
    page.heading("The scenario's own plan");
    page.line(to_text(r.own->plan, choices), Style::plain, 2);
    if (r.own->plan == winner.plan) {
      page.line("is the winner", Style::green, 2);
    } else {
      page.line(fmt::format("{} against the winner's {} ({}){}", score_text(spec, *r.own), score_text(spec, winner),
                            behind(*r.own, winner), r.own_is_among ? "" : "; it is not among the plans of the search"),
                Style::plain, 2);
      tell_constraints(page, shortfall(spec, r.own->step), r.own->step, spec);
      page.table(comparison(*r.own, winner, "own plan"));
    }
  }
  if (!r.rules.empty()) {
    page.heading("Rules of thumb, and the best plan that breaks each");
    Table table({{"rule", Kind::name},
                 {"plans", Kind::number, 1},
                 {"step time"},
                 {"against the winner"},
                 {"best that breaks it", Kind::note}});
    for (const BrokenRule& rule : r.rules) {
      const bool none = !rule.best;
      table.add({{rule.name},
                 {std::to_string(rule.plans)},
                 {none ? "-" : duration(rule.best->step.step_time)},
                 {none ? "-" : behind(*rule.best, r.best.front())},
                 {none ? "none of those simulated keeps to the constraints"
                       : to_text(rule.best->plan, choices) + (rule.is_proven ? "" : " (others may be better)")}});
    }
    page.table(table);
  }
  page.empty_line().line(
      fmt::format(
          "{} plans bounded in {} ({} costs of layers found); {} cannot fit, {} cannot be better{}; {} simulated, {} refused, "
          "{} failed; in {}",
          c.plans, duration(r.bounding), c.passes, c.without_memory, c.too_slow,
          c.left > 0 ? fmt::format(", {} may be", c.left) : "", c.simulated, c.refused, c.failed, duration(wall)),
      Style::faint);
  return page.text();
}

std::string to_text(const Explanation& e, const SearchResult& result, const SearchSpec& spec, const PlanChoices& choices,
                    const Screen& screen) {
  Page page(screen);
  page.heading("Why not " + to_text(e.plan, choices));
  if (!e.refusal.empty()) {
    page.line("it is no valid scenario: " + e.refusal, Style::red, 2);
    return page.text();
  }
  if (!e.is_among)
    page.line("it is not among the plans of the search: an axis has other values, or a constraint keeps it out", Style::yellow,
              2);
  if (!e.failure.empty()) {
    page.line("it could not be simulated: " + e.failure, Style::red, 2);
    return page.text();
  }
  const RatedPlan& rated = *e.rated;
  if (!e.lacks.none()) page.line("a constraint rules it out", Style::plain, 2);
  tell_constraints(page, e.lacks, rated.step, spec);
  page.line(fmt::format("at least {} and {} of memory by the bounds; simulated {} and {}", duration(e.time_bound),
                        bytes_text(e.memory.peak), duration(rated.step.step_time), bytes_text(rated.step.peak_memory())),
            Style::faint, 2);
  if (result.best.empty()) return page.text();
  const RatedPlan& winner = result.best.front();
  if (rated.plan == winner.plan) {
    page.line("it is the winner", Style::green, 2);
    return page.text();
  }
  page.line(
      fmt::format("{} against the winner's {} ({})", score_text(spec, rated), score_text(spec, winner), behind(rated, winner)),
      Style::plain, 2);
  page.table(comparison(rated, winner, "this plan"));
  return page.text();
}

std::string nothing_fits_sentence(const SearchResult& result, const SearchSpec& spec, const PlanChoices& choices) {
  const RatedPlan& nearest = *result.nearest;
  const Shortfall lacks = shortfall(spec, nearest.step);
  std::string what;
  const auto add = [&](const std::string& text) { what += (what.empty() ? "" : ", ") + text; };
  if (lacks.memory > 0) add(bytes_text(lacks.memory) + " of memory");
  if (lacks.bubble > 0) add(fmt::format("{} of the step too much bubble", percent(lacks.bubble)));
  if (lacks.exposed > 0) add(fmt::format("{} of the step too much exposed communication", percent(lacks.exposed)));
  return fmt::format("{}: no plan of {} fits; the nearest, {}, lacks {}", spec.file, result.counts.plans,
                     to_text(nearest.plan, choices), what);
}

}  // namespace tandem::cli
