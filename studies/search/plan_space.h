#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/search/plan.h"

namespace tandem::studies {

/// The plans that a search compares: those whose sizes keep the scenario's rules about sizes (checks/checks.h), each asked as
/// soon as what it looks at is chosen. What the other rules object to (node limits, ...) they say of the few plans that are
/// simulated. Plans that would be the same step under two names are there once: sp without tp, schedules without a pipeline, ZeRO
/// without data parallelism.
class PlanSpace {
 public:
  /// The spec must outlive it.
  explicit PlanSpace(const SearchSpec& spec);

  const PlanChoices& choices() const { return choices_; }

  /// Every plan, until `visit` returns false.
  void for_each(const std::function<bool(const Plan&)>& visit) const;
  /// All of them, in their order. Throws InputError where they are more than `most_plans`.
  std::vector<Plan> all() const;
  /// What the scenario says without its search; whether or not it is among them.
  const Plan& own() const { return own_; }
  bool contains(const Plan& plan) const;

  /// The plan of "tp=4,pp=8,...", with the scenario's own value of each axis that is left out; dp follows. Throws InputError.
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
  /// The values of sp for which the trial's tp and cp divide the model: none where they do not.
  std::vector<std::int64_t> sps(Scenario& trial) const;
  std::vector<std::int64_t> schedules(Scenario& trial) const;  ///< for the trial's pp and vpp
  bool tp_is_in_node(const Plan& plan) const;
  bool visit_mesh(Plan plan, const std::vector<std::int64_t>& sps, Scenario& trial,
                  const std::function<bool(const Plan&)>& visit) const;
};

/// The two demands of the search that no plan meets together; or the one that none meets, with what it is up against. A sentence
/// with a place, to be thrown as InputError. Only for a space that is empty.
[[noreturn]] void refuse_contradiction(const SearchSpec& spec);

}  // namespace tandem::studies
