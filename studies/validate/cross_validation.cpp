#include "studies/validate/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "studies/validate/score.h"

namespace tandem::studies {
namespace {

struct Row {
  const ValidatedRow* row = nullptr;
  double log_ratio = 0, weight = 1;
};

double location_of(const std::vector<Row>& rows, const std::function<bool(const ValidatedRow&)>& counts) {
  std::vector<WeightedValue> ratios;
  for (const Row& row : rows)
    if (counts(*row.row)) ratios.push_back({row.log_ratio, row.weight});
  return huber_location(ratios);
}

/// Median |error| of the rows that count when each is slower by what `slowness` says.
double median_error(const std::vector<Row>& rows, const std::function<bool(const ValidatedRow&)>& counts,
                    const std::function<double(const ValidatedRow&)>& slowness) {
  std::vector<ScoredError> errors;
  for (const Row& row : rows)
    if (counts(*row.row)) errors.push_back({row.row->source, std::expm1(row.log_ratio - slowness(*row.row)), false});
  return score_of(errors).median;
}

}  // namespace

std::vector<CrossValidation> cross_validate(std::span<const ValidatedRow> validated) {
  std::map<std::string, double> rows_of_source;
  for (const ValidatedRow& row : validated)
    if (row.error()) rows_of_source[row.source] += 1;
  if (rows_of_source.size() < 2) return {};
  std::vector<Row> rows;
  for (const ValidatedRow& row : validated)
    if (row.error()) rows.push_back({&row, std::log1p(*row.error()), 1 / rows_of_source[row.source]});

  std::map<std::string, double> of_gpu;                                  // fitted to all
  std::map<std::pair<std::string, std::string>, double> without_source;  // by GPU and source
  for (const Row& row : rows) {
    const std::string &gpu = row.row->gpu, &source = row.row->source;
    if (!of_gpu.contains(gpu)) of_gpu[gpu] = location_of(rows, [&](const ValidatedRow& other) { return other.gpu == gpu; });
    const auto others = [&](const ValidatedRow& other) { return other.gpu == gpu && other.source != source; };
    if (!without_source.contains({gpu, source})) without_source[{gpu, source}] = location_of(rows, others);
  }
  std::vector<CrossValidation> results;
  const auto add = [&](const char* name, const std::function<bool(const ValidatedRow&)>& counts) {
    if (std::ranges::none_of(rows, [&](const Row& row) { return counts(*row.row); })) return;
    results.push_back({name, median_error(rows, counts, [&](const ValidatedRow& row) { return of_gpu.at(row.gpu); }),
                       median_error(rows, counts, [&](const ValidatedRow& row) {
                         return without_source.at({row.gpu, row.source});
                       })});
  };
  add("all", [](const ValidatedRow&) { return true; });
  add("dense", [](const ValidatedRow& row) { return !row.moe; });
  add("moe", [](const ValidatedRow& row) { return row.moe; });
  return results;
}

}  // namespace tandem::studies
