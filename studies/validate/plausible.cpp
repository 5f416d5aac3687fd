#include "studies/validate/plausible.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "runtime/base/divide_up.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::studies {
namespace {

struct Unknown {
  std::string column;
  std::vector<std::string> values;
};

/// As a column has them: flags are 0 or 1.
template <typename T>
std::vector<std::string> cells(const std::vector<T>& values) {
  std::vector<std::string> cells;
  for (const auto value : values) cells.push_back(std::to_string(static_cast<std::int64_t>(value)));
  return cells;
}

/// `count` of the items, evenly spaced, the first and the last among them.
template <typename T>
std::vector<T> evenly_spaced(std::vector<T> items, std::size_t count) {
  if (items.size() <= count) return items;
  std::vector<T> kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(std::move(items[i * (items.size() - 1) / (count - 1)]));
  return kept;
}

std::vector<std::string> chunk_counts(const RunRow& row) {
  const std::string schedule = row.name("schedule");
  const FrameworkRuns defaults = runs_of_framework(row);
  const bool told_by_overlap = defaults.interleaves && row.flag("overlap_pp").value_or(false);
  const ScheduleTraits* stated = schedule_named(schedule);
  if (stated != nullptr && stated->least_chunks == stated->most_chunks) return {std::to_string(stated->least_chunks)};
  const bool interleaved = schedule.empty() ? defaults.always_interleaves || told_by_overlap : stated != nullptr;
  if (!interleaved && (!schedule.empty() || !defaults.interleaves)) return {"1"};
  const std::int64_t pp = *row.integer(name_of(Axis::pp));
  const std::int64_t of_stage = divide_up(layers_of(row), pp);
  std::vector<std::string> counts;
  for (std::int64_t count = interleaved ? 2 : 1; count <= of_stage; ++count)
    if (of_stage % count == 0) counts.push_back(std::to_string(count));
  constexpr std::size_t most_counts = 4;
  return evenly_spaced(std::move(counts), most_counts);
}

std::vector<Unknown> unknowns_of(const RunRow& row, bool to_fit) {
  const FrameworkRuns defaults = runs_of_framework(row);
  const auto above_one = [&](std::string_view column) { return row.integer(column).value_or(1) > 1; };
  std::vector<Unknown> unknowns;
  const auto add = [&](const char* column, std::vector<std::string> values) {
    if (!row.has(column)) unknowns.push_back({column, std::move(values)});
  };
  add("zero", cells(defaults.zero));
  if (above_one(name_of(Axis::tp))) add("sp", cells(defaults.sp));
  if (above_one(name_of(Axis::pp)) && !row.has("vpp")) add("vpp", chunk_counts(row));
  add("micro_batch", {"1", "2", "4", "8"});
  add("recompute", to_fit ? defaults.recompute_to_fit : defaults.recompute);
  if (to_fit) add("recompute_every", {"8", "4", "2", "1"});
  return unknowns;
}

/// The values of the `index`-th combination, the last unknown varying fastest.
Assumptions combination(const std::vector<Unknown>& unknowns, std::size_t index) {
  Assumptions values(unknowns.size());
  for (std::size_t i = unknowns.size(); i-- > 0; index /= unknowns[i].values.size())
    values[i] = {unknowns[i].column, unknowns[i].values[index % unknowns[i].values.size()]};
  return values;
}

/// Those that make scenarios, and why the first that does not does not.
std::vector<PlausibleRun> combined(const RunRow& row, bool to_fit, std::optional<InputError>& refusal) {
  const std::vector<Unknown> unknowns = unknowns_of(row, to_fit);
  std::size_t combinations = 1;
  for (const Unknown& unknown : unknowns) combinations *= unknown.values.size();
  std::vector<PlausibleRun> runs;
  for (std::size_t index = 0; index < combinations; ++index) {
    Assumptions assumed = combination(unknowns, index);
    RunRow filled = row;
    for (const auto& [column, value] : assumed) filled = filled.with(column, value);
    try {
      runs.push_back({std::move(assumed), to_fit, scenario_of(filled)});
    } catch (const InputError& error) {
      if (!refusal) refusal = error;
    }
  }
  return evenly_spaced(std::move(runs), most_plausible_runs);
}

}  // namespace

std::vector<PlausibleRun> plausible_runs(const RunRow& row) {
  std::optional<InputError> refusal;
  std::vector<PlausibleRun> runs = combined(row, false, refusal);
  if (!row.has("recompute")) std::ranges::move(combined(row, true, refusal), std::back_inserter(runs));
  if (runs.empty()) throw refusal.value_or(InputError(row.place(), "no value of its blank columns makes a scenario"));
  return runs;
}

}  // namespace tandem::studies
