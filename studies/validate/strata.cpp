#include "studies/validate/strata.h"

#include <map>

namespace tandem::studies {
namespace {

std::string kind_of(const ValidatedRow& row) { return row.moe ? "moe" : "dense"; }

struct Grouping {
  const char* by;
  std::string (*name_of)(const ValidatedRow& row);
};

constexpr Grouping groupings[] = {
    {"all", [](const ValidatedRow&) { return std::string("all"); }},
    {"kind", kind_of},
    {"gpu", [](const ValidatedRow& row) { return row.gpu; }},
    {"gpu and kind", [](const ValidatedRow& row) { return row.gpu + " " + kind_of(row); }},
    {"framework", [](const ValidatedRow& row) { return row.framework; }},
    {"source", [](const ValidatedRow& row) { return row.source; }},
};

void add_strata(const std::string& set, const std::vector<const ValidatedRow*>& rows, std::vector<Stratum>& strata) {
  for (const Grouping& grouping : groupings) {
    std::map<std::string, std::vector<ScoredError>> errors;
    for (const ValidatedRow* row : rows) {
      const Interval& interval = row->prediction->interval;
      errors[grouping.name_of(*row)].push_back(
          {row->source, *row->error(), interval.low <= *row->measured && *row->measured <= interval.high});
    }
    for (const auto& [name, of_name] : errors) strata.push_back({set, grouping.by, name, score_of(of_name)});
  }
}

}  // namespace

std::vector<Stratum> strata_of(std::span<const ValidatedRow> rows) {
  std::vector<const ValidatedRow*> all, core;
  for (const ValidatedRow& row : rows) {
    if (!row.error()) continue;
    all.push_back(&row);
    if (row.core) core.push_back(&row);
  }
  std::vector<Stratum> strata;
  add_strata("all", all, strata);
  if (!core.empty() && core.size() < all.size()) add_strata("core", core, strata);
  return strata;
}

}  // namespace tandem::studies
