#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "studies/search/memory_bound.h"
#include "studies/search/plan_runs.h"
#include "studies/search/plan_score.h"
#include "studies/search/plan_space.h"
#include "studies/search/rules_of_thumb.h"
#include "studies/search/step_bound.h"

namespace tandem::studies {

/// A simulated plan, with the lower bound of its time that was found before.
struct RatedPlan {
  Plan plan;
  Seconds bound = 0;
  StepResult step;
  double score = 0;  ///< see `score`
};

/// The best plan that breaks a rule of thumb.
struct BrokenRule {
  std::string name;
  std::size_t plans = 0;          ///< plans that break the rule and may fit
  std::optional<RatedPlan> best;  ///< of the simulated plans that keep to the constraints
  bool is_proven = true;          ///< no other plan that breaks the rule can be better
};

/// What a search did.
struct SearchCounts {
  std::size_t plans = 0;
  std::size_t without_memory = 0;  ///< ruled out by the memory that they take at least
  std::size_t too_slow = 0;        ///< ruled out by the time that they take at least
  std::size_t left = 0;            ///< not simulated, and perhaps better than the best
  std::size_t refined = 0;         ///< plans whose time was bounded through the schedule
  std::size_t passes = 0;          ///< kinds of layers whose cost was found
  std::size_t simulated = 0, refused = 0, failed = 0;
};

struct SearchResult {
  std::vector<RatedPlan> best;  ///< ten at most, best first, all within the constraints
  bool best_is_proven = true;   ///< no plan of the space is better than the first
  /// By which share of its score a plan that was not simulated may at most beat the first; none where time was over before every
  /// plan was bounded.
  std::optional<double> gap;
  std::size_t proven = 0;         ///< how many of `best` are known to be the best of the space
  std::vector<RatedPlan> pareto;  ///< of the simulated plans, those that no other beats in time and memory; fastest first
  std::vector<BrokenRule> rules;
  std::optional<RatedPlan> own;      ///< the scenario's own plan, where it can be simulated
  bool own_is_among = false;         ///< the scenario's own plan is one of the space
  std::optional<RatedPlan> nearest;  ///< where no plan keeps to the constraints: the one that lacks least
  SearchCounts counts;
  Seconds bounding = 0;      ///< how long the bounds took
  bool ended_early = false;  ///< as its time was over
};

/// How far a search has come.
struct SearchProgress {
  std::string doing;
  std::size_t done = 0, of = 0;
  std::optional<RatedPlan> best = {};  ///< of those simulated so far; told when a batch of simulations has ended
};

/// Finds the best plans of a space.
///
/// Every plan's memory and time are bounded; of those that may fit, the ones with the lowest bounds are simulated, eight at a
/// time, until the next bound is no better than the tenth best plan found: then the best ten are those of the whole space. After
/// `most_for_ten` simulations the winner alone is proven. What is simulated depends on bounds and results alone, never on which
/// simulation ends first, so that the result is the same for any number of processes. A search that may take so long and no
/// longer simulates the scenario's own plan first, and returns what it has when its time is over.
class Search {
 public:
  static constexpr std::size_t batch = 8, most_for_ten = 48, most_for_winner = 512, most_for_a_rule = 8, best_shown = 10;

  /// `spec`, `space` and `runs` must outlive the search.
  Search(const SearchSpec& spec, const PlanSpace& space, PlanRuns& runs);

  SearchResult run(const std::function<void(const SearchProgress&)>& progress, std::optional<Seconds> within = {});

  /// Returns a lower bound of the plan's time; the plan need not be in the space.
  Seconds time_bound(const Plan& plan);
  /// Returns a lower bound of the plan's memory; the plan need not be in the space.
  MemoryBound memory_bound_of(const Plan& plan);
  StageCostModel& costs() { return costs_; }

 private:
  struct Candidate {
    Plan plan;
    Seconds bound = 0;
    double score = 0;
    bool is_refined = false;
  };
  using Place = std::pair<double, std::size_t>;  ///< a candidate's bound of the score, and its place in the order of plans
  const SearchSpec& spec_;
  const PlanSpace& space_;
  PlanRuns& runs_;
  StageCostModel costs_;
  Schedules schedules_;
  std::vector<Candidate> candidates_;
  std::set<Place> waiting_;
  std::map<Plan, Seconds> bounds_;  ///< of the plans that were simulated
  std::vector<Plan> least_memory_;  ///< of the plans that cannot fit, those that lack least
  bool all_bounded_ = false;
  std::function<void()> check_time_ = [] {};  ///< throws when time is over
  SearchCounts counts_;

  using Progress = std::function<void(const SearchProgress&)>;
  void seek(SearchResult& result, const Progress& progress);
  void simulate_own(const Progress& progress);
  std::optional<double> gap_to(const RatedPlan& best) const;
  void find_pairs(const std::vector<Plan>& plans, const std::vector<std::size_t>& of, const Progress& progress);
  void bound_all(const Progress& progress);
  double score_of(const Plan& plan, Seconds time) const;
  std::vector<std::size_t> next(std::size_t most, double limit, const std::function<bool(const Plan&)>& is_wanted);
  void simulate(const std::vector<std::size_t>& candidates, const Progress& progress);
  std::vector<RatedPlan> simulated() const;
  std::vector<RatedPlan> ranked() const;
  BrokenRule break_rule(const RuleOfThumb& rule, const Progress& progress);
  RatedPlan nearest(const Progress& progress);
};

}  // namespace tandem::studies
