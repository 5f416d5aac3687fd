#include "cli/text/diff_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/terminal/page.h"
#include "runtime/base/quantities.h"
#include "studies/kineto/traced_result.h"

namespace tandem::cli {
namespace {

using Kind = Column::Kind;

constexpr const char* absent = "-";
constexpr std::size_t bar_length = 20;

Style style_of(double change) {
  if (change == 0) return Style::faint;
  return change > 0 ? Style::red : Style::green;
}

/// Sums of many tasks end in other digits when their order changes.
bool shows(const Difference& difference) {
  constexpr Seconds least_shown = 0.05e-6;
  return difference.a.has_value() != difference.b.has_value() || std::abs(difference.change()) >= least_shown;
}

template <typename T>
std::string relative_change(const std::optional<T>& a, const std::optional<T>& b) {
  if (!b) return "gone";
  if (!a) return "new";
  if (*a == *b) return "";
  return *a == 0 ? "new" : percent_change(static_cast<double>(*b) / static_cast<double>(*a) - 1);
}

std::string legend_of(const StepResult& step) {
  std::string text = step.scenario;
  const std::string& backend = step.run.backend;
  if (step.gpus > 0) text += fmt::format(", {} GPUs", step.gpus);
  if (step.is_simulated()) return text + ", simulated";
  return backend.empty() ? text : text + ", executed (" + backend + ")";
}

Table legend(const ResultDifference& d) {
  Table table({{"", Kind::name}, {"", Kind::name}, {"", Kind::note}});
  table.add({{"a"}, {d.a.name}, {legend_of(d.a.step), Style::faint}});
  table.add({{"b"}, {d.b.name}, {legend_of(d.b.step), Style::faint}});
  return table;
}

/// Figures that follow from the step time and say more where the two steps did not do the same.
Table figures(const ResultDifference& d) {
  Table table({{"", Kind::name}, {"a"}, {"b"}, {"change"}});
  const auto add = [&](const std::string& name, auto a, auto b, const auto& text_of) {
    const bool both_known = a > 0 && b > 0;
    if (both_known && a != b)
      table.add({{name}, {text_of(a)}, {text_of(b)}, {relative_change(std::optional(a), std::optional(b))}});
  };
  const auto count = [](std::int64_t value) { return std::to_string(value); };
  const StepResult &a = d.a.step, &b = d.b.step;
  add("GPUs", a.gpus, b.gpus, count);
  add("tokens a step", a.tokens, b.tokens, count);
  add("tokens/s/GPU", a.tokens_per_second_per_gpu, b.tokens_per_second_per_gpu,
      [](double value) { return fmt::format("{:.1f}", value); });
  add("MFU", a.mfu, b.mfu, percent);
  return table;
}

Seconds largest_change(const std::vector<Difference>& differences) {
  Seconds largest = 0;
  for (const Difference& difference : differences) largest = std::max(largest, std::abs(difference.change()));
  return largest;
}

/// "exposed tp +180.20 ms, compute -40.10 ms, all else +0.10 ms": adds up to the change of the step time.
std::string explanation(const ResultDifference& d) {
  constexpr std::size_t most = 3;
  constexpr double worth_a_word = 0.05;  // of the largest
  std::vector<Difference> parts = d.parts;
  std::ranges::stable_sort(parts, std::greater<>(), [](const Difference& part) { return std::abs(part.change()); });
  const Seconds least = worth_a_word * largest_change(parts);
  std::string text;
  Seconds rest = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Seconds change = parts[i].change();
    if (i < most && shows(parts[i]) && std::abs(change) >= least)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", parts[i].name, change_of(change));
    else
      rest += change;
  }
  if (!text.empty() && shows({"", 0, rest})) text += ", all else " + change_of(rest);
  return text;
}

void add_row(Table& table, const Difference& d, Seconds full_bar) {
  const Seconds change = d.change();
  const auto time = [](const std::optional<Seconds>& t) { return TextCell{t ? duration(*t) : absent}; };
  table.add({{d.name},
             time(d.a),
             time(d.b),
             {shows(d) ? change_of(change) : "", style_of(change)},
             {shows(d) ? relative_change(d.a, d.b) : "", style_of(change)},
             bar_of(full_bar > 0 ? std::abs(change) / full_bar : 0, style_of(change), change > 0 ? '+' : '-')});
}

Table table_of_times(const std::string& what) {
  return Table({{what, Kind::name},
                {"a", Kind::number, 2},
                {"b", Kind::number, 3},
                {"change"},
                {"", Kind::number, 4},
                {"", Kind::bar, 1, bar_length}});
}

Table by_part(const ResultDifference& d) {
  Table table = table_of_times("");
  for (const Difference& part : d.parts)
    if (part.a.value_or(0) > 0 || part.b.value_or(0) > 0) add_row(table, part, largest_change(d.parts));
  return table;
}

void add_kinds(Page& page, const ResultDifference& d) {
  constexpr std::size_t most = 12;
  Table table = table_of_times("kind of task");
  std::size_t changed = 0;
  Seconds rest = 0;
  for (const Difference& kind : d.kinds) {
    if (!shows(kind)) continue;
    if (++changed <= most)
      add_row(table, kind, largest_change(d.kinds));
    else
      rest += kind.change();
  }
  if (changed == 0) return;
  page.heading("By kind of task, most changed first (of a rank, overlapped or not)").table(table);
  if (changed > most) page.line(fmt::format("and {} more, together {}", changed - most, change_of(rest)), Style::faint, 2);
}

/// Columns of the parts that change anywhere, where there is no room without those that change least.
void add_stages(Page& page, const ResultDifference& d) {
  struct Part {
    std::string name;
    Seconds largest = 0;
  };
  std::vector<Part> parts;
  for (const StageDifference& stage : d.stages) {
    for (const Difference& part : stage.parts) {
      const auto known = std::ranges::find(parts, part.name, &Part::name);
      Part& sum = known == parts.end() ? parts.emplace_back(Part{part.name}) : *known;
      if (part.a && part.b) sum.largest = std::max(sum.largest, std::abs(part.change()));
    }
  }
  constexpr Seconds least_shown = 0.5e-5;  // 0.01 ms, rounded
  std::erase_if(parts, [](const Part& part) { return part.largest < least_shown; });
  const std::size_t stages_in_a = d.a.step.stage_times.size(), stages_in_b = d.b.step.stage_times.size();
  const bool stages_come_or_go = stages_in_a > 0 && stages_in_b > 0 && stages_in_a != stages_in_b;
  if (parts.empty() && !stages_come_or_go) return;

  std::vector<Column> columns = {{"stage"}};
  for (const Part& part : parts) {
    const auto smaller = std::ranges::count_if(parts, [&](const Part& other) { return other.largest < part.largest; });
    columns.push_back({part.name, Kind::number, static_cast<int>(smaller) + 1});
  }
  columns.push_back({"", Kind::note});
  Table table(std::move(columns));
  for (const StageDifference& stage : d.stages) {
    std::vector<TextCell> cells;
    const bool in_a = stage.stage < stages_in_a, in_b = stage.stage < stages_in_b;
    for (const Part& part : parts) {
      const auto found = std::ranges::find(stage.parts, part.name, &Difference::name);
      const bool both = found != stage.parts.end() && found->a && found->b;
      cells.push_back(both ? TextCell{fmt::format("{:+.2f}", 1e3 * found->change()), style_of(found->change())}
                           : TextCell{absent});
    }
    cells.push_back({in_a && in_b ? "" : in_a ? "only in a" : "only in b"});
    table.add_numbered(stage.stage, cells);
  }
  page.heading("By pipeline stage, ms more or less (mean over its ranks)").table(table);
}

void add_memory(Page& page, const ResultDifference& d) {
  if (std::ranges::all_of(d.memory, &MemoryDifference::is_none)) return;
  Table table({{"stage"}, {"a"}, {"b"}, {"change"}, {""}});
  const auto gb = [](const std::optional<Bytes>& bytes) { return TextCell{bytes ? gigabytes(*bytes) : absent}; };
  for (const MemoryDifference& stage : d.memory) {
    const double change = static_cast<double>(stage.b.value_or(0) - stage.a.value_or(0));
    const bool both = stage.a && stage.b;
    table.add_numbered(stage.stage, {gb(stage.a),
                                     gb(stage.b),
                                     {both ? fmt::format("{:+.2f}", change / 1e9) : "", style_of(change)},
                                     {relative_change(stage.a, stage.b), style_of(change)}});
  }
  page.heading("Memory by pipeline stage, GB at the peak").table(table);
}

/// What of the results this version would have compared.
void add_missing(Page& page, const ResultDifference& d) {
  if (is_traced(d.a.step) || is_traced(d.b.step)) {
    page.empty_line().line("Not compared: axes, stages and memory, of which traces do not tell", Style::faint);
    return;
  }
  std::string text;
  const auto add = [&text](const std::string& what, const char* key, bool in_a, bool in_b) {
    if (in_a && in_b) return;
    const char* lacking = in_a ? "b has" : in_b ? "a has" : "they have";
    text += fmt::format("{}{}, as {} no `{}`", text.empty() ? "" : "; ", what, lacking, key);
  };
  add("by kind of task", "kinds", !d.a.step.kinds.empty(), !d.b.step.kinds.empty());
  add("by stage", "stages_s", !d.a.step.stage_times.empty(), !d.b.step.stage_times.empty());
  if (!text.empty()) page.empty_line().line("Not compared: " + text + ", which results of this version hold", Style::yellow);
}

}  // namespace

std::string to_text(const ResultDifference& d, const Screen& screen) {
  Page page(screen);
  if (d.is_none()) {
    page.line(fmt::format("step time {}: no difference", duration(d.a.step.step_time)), Style::strong)
        .empty_line()
        .table(legend(d));
    add_missing(page, d);
    return page.text();
  }
  const double change = d.b.step.step_time / d.a.step.step_time - 1;
  page.line(
      fmt::format("step time {} -> {} ({})", duration(d.a.step.step_time), duration(d.b.step.step_time), percent_change(change)),
      Style::strong);
  const std::string why = explanation(d);
  if (!why.empty()) page.line(why, Style::plain, 2);
  page.empty_line().table(legend(d));
  if (const Table table = figures(d); !table.empty()) page.empty_line().table(table);
  page.heading("By part of the step (mean over ranks)").table(by_part(d));
  add_kinds(page, d);
  add_stages(page, d);
  add_memory(page, d);
  add_missing(page, d);
  return page.text();
}

}  // namespace tandem::cli
