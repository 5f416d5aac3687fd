#include "studies/validate/ratios.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace tandem::studies {
namespace {

using Columns = std::vector<std::string_view>;

struct RatioAxis {
  std::string_view name;
  Columns varied;    ///< at least one of them differs
  Columns followed;  ///< may differ
};

const std::vector<RatioAxis>& ratio_axes() {
  static const std::vector<RatioAxis> axes = {{"scaling", {"n_gpus"}, {name_of(Axis::dp), "global_batch"}},
                                              {"schedule", {"vpp", "schedule"}, {}},
                                              {"micro-batch", {"micro_batch"}, {}},
                                              {"batch", {"global_batch"}, {}},
                                              {"sequence", {"sequence"}, {"global_batch"}},
                                              {name_of(Axis::tp), {name_of(Axis::tp)}, {"sp", name_of(Axis::dp)}},
                                              {name_of(Axis::cp), {name_of(Axis::cp)}, {name_of(Axis::dp)}},
                                              {name_of(Axis::pp), {name_of(Axis::pp)}, {name_of(Axis::dp), "vpp", "schedule"}},
                                              {"recompute", {"recompute"}, {"sp"}},
                                              {"precision", {"precision"}, {"fp8_recipe"}}};
  return axes;
}

bool holds(const Columns& columns, std::string_view name) { return std::ranges::find(columns, name) != columns.end(); }

/// The batch that the runs of a pair have in common.
enum class SameBatch : std::uint8_t {
  whole,
  of_replica
};

/// What two runs share when they differ along `axis` only; nothing where the row does not say it.
std::optional<std::string> key_of(const RunRow& row, const RatioAxis& axis, SameBatch same) {
  std::string key;
  for (const std::string_view column : scenario_columns()) {
    if (holds(axis.varied, column) || holds(axis.followed, column)) continue;
    if (column != "global_batch" || same == SameBatch::whole) {
      key += row.name(column) + '\n';
      continue;
    }
    const auto batch = row.number(column), replicas = row.number(name_of(Axis::dp));
    if (!batch || !replicas) return std::nullopt;
    key += std::to_string(*batch / *replicas) + '\n';
  }
  return key;
}

std::string place_on(const RunRow& row, const RatioAxis& axis) {
  std::string place;
  for (const std::string_view column : axis.varied) place += row.name(column) + '\n';
  return place;
}

void add_ratios(std::vector<Ratio>& ratios, const RatioAxis& axis, SameBatch same, std::span<const RunRow> rows,
                std::span<const ValidatedRow> validated) {
  std::map<std::string, std::size_t> last;  // by key
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::optional<std::string> key = key_of(rows[i], axis, same);
    if (!key || !validated[i].error()) continue;
    const auto [entry, is_first] = last.emplace(*key, i);
    const ValidatedRow &from = validated[entry->second], &to = validated[i];
    if (!is_first && place_on(rows[i], axis) != place_on(rows[entry->second], axis))
      ratios.push_back({.axis = std::string(axis.name),
                        .source = to.source,
                        .from = from.id,
                        .to = to.id,
                        .measured = *to.measured / *from.measured,
                        .predicted = to.prediction->step_time / from.prediction->step_time});
    entry->second = i;
  }
}

}  // namespace

std::vector<Ratio> ratios_of(std::span<const RunRow> rows, std::span<const ValidatedRow> validated) {
  std::vector<Ratio> ratios;
  for (const RatioAxis& axis : ratio_axes()) {
    add_ratios(ratios, axis, SameBatch::whole, rows, validated);
    if (holds(axis.followed, name_of(Axis::dp)) && !holds(axis.followed, "global_batch"))
      add_ratios(ratios, axis, SameBatch::of_replica, rows, validated);
  }
  return ratios;
}

std::vector<RatioScore> score_ratios(std::span<const Ratio> ratios) {
  std::vector<RatioScore> scores;
  for (const RatioAxis& axis : ratio_axes()) {
    std::vector<ScoredError> errors;
    for (const Ratio& ratio : ratios)
      if (ratio.axis == axis.name) errors.push_back({ratio.source, ratio.error()});
    if (!errors.empty()) scores.push_back({std::string(axis.name), score_of(errors)});
  }
  return scores;
}

}  // namespace tandem::studies
