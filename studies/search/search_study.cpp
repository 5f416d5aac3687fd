#include "studies/search/search_study.h"

#include <utility>

namespace tandem::studies {

SearchStudy::SearchStudy(const std::string& scenario, const std::vector<std::string>& overrides, const std::string& explained)
    : SearchStudy(load_search(scenario, overrides), explained) {}

SearchStudy::SearchStudy(SearchSpec spec, const std::string& explained) : spec_(std::move(spec)), space_(spec_) {
  if (!explained.empty()) asked_ = space_.parse(explained);
  bool any = false;
  space_.for_each([&](const Plan&) { return !(any = true); });
  if (!any) refuse_contradiction(spec_);
}

FoundPlans SearchStudy::run(ResultsDatabase& database, StepWorkers workers,
                            const std::function<void(const SearchProgress&)>& progress, std::optional<Seconds> within) const {
  PlanRuns runs(spec_, choices(), database, workers);
  Search search(spec_, space_, runs);
  FoundPlans found{.result = search.run(progress, within), .explanation = {}, .rows = {}};
  if (asked_) found.explanation = explain(*asked_, spec_, space_, search, runs);
  found.rows = runs.rows();
  return found;
}

}  // namespace tandem::studies
