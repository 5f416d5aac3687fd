#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/search/plan.h"

namespace tandem::studies {

/// The plans that a search compares. The space holds the plans whose sizes keep the scenario's rules about sizes
/// (checks/checks.h); each rule is asked as soon as the sizes that it looks at are chosen. The other rules (node limits, ...) are
/// asked only of the few plans that are simulated. Plans that are the same step under two names are in the space once: sp without
/// tp, schedules without a pipeline, ZeRO without data parallelism.
class PlanSpace {
 public:
  /// `spec` must outlive the space.
  explicit PlanSpace(const SearchSpec& spec);

  const PlanChoices& choices() const { return choices_; }

  /// Visits every plan until `visit` returns false.
  void for_each(const std::function<bool(const Plan&)>& visit) const;
  /// Returns all plans in their order. Throws InputError where there are more than `most_plans`.
  std::vector<Plan> all() const;
  /// Returns the scenario's own plan, which the space need not contain.
  const Plan& own() const { return own_; }
  bool contains(const Plan& plan) const;

  /// Returns the plan of "tp=4,pp=8,...". An axis that is left out has the scenario's own value, and dp follows from the others.
  /// Throws InputError.
  Plan parse(const std::string& text) const;

  static constexpr std::size_t most_plans = 2'000'000;

 private:
  const SearchSpec& spec_;
  PlanChoices choices_;
  std::array<std::vector<std::int64_t>, search_axis_count> free_;  ///< by axis that has choices: the indices that may be chosen
  Plan own_;

  void choose_among(SearchAxis axis, const std::vector<std::string_view>& defaults, const YamlNode& own);
  const std::vector<std::int64_t>& free(SearchAxis axis) const { return free_[static_cast<std::size_t>(axis)]; }
  std::vector<std::int64_t> sizes(SearchAxis axis, std::int64_t most) const;
  std::vector<std::int64_t> zeros() const;
  /// Returns the values of sp for which the trial's tp and cp divide the model, if any.
  std::vector<std::int64_t> sps(Scenario& trial) const;
  std::vector<std::int64_t> schedules(Scenario& trial) const;  ///< for the trial's pp and vpp
  bool tp_is_in_node(const Plan& plan) const;
  /// Whether the search should try another order of the axes than the scenario's.
  bool order_matters(const Plan& plan) const;
  bool visit_mesh(Plan plan, const std::vector<std::int64_t>& sps, Scenario& trial,
                  const std::function<bool(const Plan&)>& visit) const;
};

/// Throws an InputError that names the two demands of the search that no plan meets together, or the one that no plan meets and
/// the limit that it meets. Only for a search whose space is empty.
[[noreturn]] void refuse_contradiction(const SearchSpec& spec);

}  // namespace tandem::studies
