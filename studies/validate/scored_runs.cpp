#include "studies/validate/scored_runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "studies/validate/run_scenario.h"

namespace tandem::studies {
namespace {

std::size_t place_of_column(const CsvTable& table, const std::string& name, const std::string& file) {
  const auto column = std::ranges::find(table.header, name, &CsvCell::text);
  if (column == table.header.end()) throw InputError({.file = file, .line = 1}, "the table has no column `" + name + "`");
  return static_cast<std::size_t>(column - table.header.begin());
}

std::optional<Seconds> time_in(const CsvCell& cell) {
  if (cell.text.empty()) return std::nullopt;
  double time = 0;
  const char* const end = cell.text.data() + cell.text.size();
  const auto [parsed_to, error] = std::from_chars(cell.text.data(), end, time);
  if (error != std::errc{} || parsed_to != end || !(time > 0) || !std::isfinite(time))
    throw InputError(cell.place, excerpt(cell.text) + " is no time of a step, expected seconds above 0, or nothing");
  return time;
}

}  // namespace

ScoredRuns join_scored_runs(const std::string& runs_file, const std::string& scored_file) {
  const CsvTable scored = parse_csv(read_text_file(scored_file, "a table of predictions"), scored_file);
  const std::size_t id = place_of_column(scored, "id", scored_file);
  const std::size_t measured = place_of_column(scored, "measured_step_time_s", scored_file);
  const std::size_t predicted = place_of_column(scored, "predicted_step_time_s", scored_file);
  std::map<std::string, const std::vector<CsvCell>*> by_id;
  for (const std::vector<CsvCell>& cells : scored.rows) by_id[cells[id].text] = &cells;

  ScoredRuns joined;
  std::set<std::string> known;
  for (const RunRow& row : load_runs(runs_file).rows) {
    known.insert(row.text("id"));
    const auto found = by_id.find(row.text("id"));
    if (found == by_id.end()) continue;
    const std::optional<Seconds> time = time_in((*found->second)[measured]), said = time_in((*found->second)[predicted]);
    if (!time || !said) continue;
    ValidatedRow& run = joined.validated.emplace_back();
    run.id = row.text("id");
    run.source = row.text("source");
    run.framework = row.text("framework");
    run.gpu = row.name("gpu");
    run.moe = has_experts(row);
    run.core = row.flag("core").value_or(false);
    run.measured = time;
    run.prediction.emplace().step_time = *said;
    joined.rows.push_back(row);
  }
  for (const auto& [name, cells] : by_id)
    if (!known.contains(name)) throw InputError((*cells)[id].place, "`" + name + "` is no run of " + runs_file);
  return joined;
}

}  // namespace tandem::studies
