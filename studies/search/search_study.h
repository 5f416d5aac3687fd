#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "studies/runner/results_database.h"
#include "studies/search/explain.h"

namespace tandem::studies {

/// What a search found.
struct FoundPlans {
  SearchResult result;
  std::optional<Explanation> explanation;  ///< of the plan that the user asked about
  std::vector<PointRow> rows;              ///< of the simulated plans
};

/// The search that a scenario's file asks for, with its space of plans, which is not empty.
class SearchStudy {
 public:
  /// Reads the scenario and its `search` block (scenarios/reading/search_spec.h). `explained` is a plan to be explained, such as
  /// "tp=4,pp=8"; empty for none. Throws InputError, also where no plan meets what is asked.
  SearchStudy(const std::string& scenario, const std::vector<std::string>& overrides, const std::string& explained);
  /// The search of a scenario that was read already.
  explicit SearchStudy(SearchSpec spec, const std::string& explained = "");
  SearchStudy(const SearchStudy&) = delete;  // the space refers to the spec
  SearchStudy& operator=(const SearchStudy&) = delete;

  const SearchSpec& spec() const { return spec_; }
  const PlanChoices& choices() const { return space_.choices(); }

  /// Finds the best plans (search.h), or the best so far when the time is over. Plans whose results the database holds are not
  /// simulated again.
  FoundPlans run(ResultsDatabase& database, StepWorkers workers, const std::function<void(const SearchProgress&)>& progress,
                 std::optional<Seconds> within = {}) const;

 private:
  SearchSpec spec_;
  PlanSpace space_;
  std::optional<Plan> asked_;
};

}  // namespace tandem::studies
