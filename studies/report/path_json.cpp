#include "studies/report/path_json.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/analysis/critical_path.h"
#include "studies/report/packed_column.h"
#include "studies/report/tick.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

/// Strings by number, in the order in which they are first met.
class Names {
 public:
  std::uint32_t number_of(const std::string& name) {
    const auto [entry, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size()));
    if (is_new) names_.push_back(name);
    return entry->second;
  }
  Json take() { return std::move(names_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  Json names_ = Json::array();
};

}  // namespace

Json path_json(const Dag& dag, const Timeline& timeline, const std::vector<DrawnRow>& drawn) {
  constexpr std::int16_t not_drawn = -1;
  std::map<std::pair<RankIndex, std::int32_t>, std::int16_t> row_of;  // by rank and stage
  for (std::size_t row = 0; row < drawn.size(); ++row)
    row_of.emplace(std::pair(drawn[row].rank, drawn[row].stage), static_cast<std::int16_t>(row));

  const std::vector<PathSegment> path = critical_path(dag, timeline);
  const Tick tick(timeline.makespan());
  Names names;
  std::vector<std::int16_t> rows;
  std::vector<std::uint32_t> duration, kinds, task, tasks;
  std::int16_t row = not_drawn;
  std::int64_t now = 0;
  for (const PathSegment& segment : path) {
    if (segment.task != no_id) {
      const auto found = row_of.find({dag.tasks[segment.task].rank, segment.stage});
      row = found == row_of.end() ? not_drawn : found->second;
    }
    const std::uint32_t kind = names.number_of(kind_of(dag, segment));
    const std::int64_t end = tick.number_at(segment.end);
    const auto length = static_cast<std::uint32_t>(end - now);
    now = end;
    if (!rows.empty() && rows.back() == row && kinds.back() == kind) {
      duration.back() += length;
      ++tasks.back();
      continue;
    }
    rows.push_back(row);
    duration.push_back(length);
    kinds.push_back(kind);
    task.push_back(names.number_of(segment.task == no_id ? "" : std::string(dag.name_of_task(segment.task))));
    tasks.push_back(1);
  }
  Json sums = Json::array();
  for (const PathKind& kind : sum_by_kind(dag, path)) sums.push_back({{"name", kind.name}, {"time_s", kind.time}});
  return {{"tick_s", tick.seconds()},
          {"segments", rows.size()},
          {"names", names.take()},
          {"columns",
           {{"row", packed(rows)},
            {"duration", packed(duration)},
            {"kind", packed(kinds)},
            {"task", packed(task)},
            {"tasks", packed(tasks)}}},
          {"kinds", sums}};
}

}  // namespace tandem::studies
