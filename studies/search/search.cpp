#include "studies/search/search.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "studies/search/in_children.h"

namespace tandem::studies {
namespace {

/// Sums of the same times in another order.
constexpr double rounding = 1e-9;

/// Thrown through whatever a search is doing.
struct TimeIsOver {};

bool ranks_before(const RatedPlan& a, const RatedPlan& b) { return a.score != b.score ? a.score < b.score : a.plan < b.plan; }

}  // namespace

Search::Search(const SearchSpec& spec, const PlanSpace& space, PlanRuns& runs) : spec_(spec), space_(space), runs_(runs) {}

double Search::score_of(const Plan& plan, Seconds time) const {
  return score(spec_, plan.gpus, spec_.scenario.training.global_batch * spec_.scenario.training.sequence, time);
}

Seconds Search::time_bound(const Plan& plan) {
  const Scenario scenario = scenario_of(plan, space_.choices(), spec_.scenario);
  const StageCosts costs = costs_.of(scenario);
  return (1 - rounding) * std::max(coarse_step_bound(scenario, costs), step_bound(scenario, costs, schedules_));
}

MemoryBound Search::memory_bound_of(const Plan& plan) {
  const Scenario scenario = scenario_of(plan, space_.choices(), spec_.scenario);
  return memory_bound(scenario, costs_.of(scenario), schedules_);
}

void Search::find_pairs(const std::vector<Plan>& plans, const std::vector<std::size_t>& of, const Progress& progress) {
  if (!spec_.scenario.training.overlap_ep) return;
  for (const std::size_t i : of) costs_.pairs().ask_for(scenario_of(plans[i], space_.choices(), spec_.scenario));
  costs_.pairs().find(runs_.processes_here(), [&](std::size_t done, std::size_t count) {
    progress({"costs of pairs of passes", done, count});
  });
}

void Search::bound_all(const Progress& progress) {
  const std::vector<Plan> plans = space_.all();
  counts_.plans = plans.size();
  for (const Plan& plan : plans)
    costs_.passes().ask_for(scenario_of(plan, space_.choices(), spec_.scenario), PassRanks::of_stages);
  costs_.passes().find(runs_.processes_here(), [&](std::size_t done, std::size_t of) {
    progress({"costs of layers", done, of});
  });
  SharedDoubles bounds(2 * plans.size());  // of each plan's memory and time
  const auto bound = [&](std::size_t i) {
    const Scenario scenario = scenario_of(plans[i], space_.choices(), spec_.scenario);
    const StageCosts costs = costs_.of(scenario, PassRanks::of_stages);
    bounds.values()[2 * i] = static_cast<double>(memory_bound(scenario, costs, schedules_).peak);  // exact up to 2^53
    bounds.values()[2 * i + 1] = (1 - rounding) * coarse_step_bound(scenario, costs);
  };
  constexpr std::size_t block = 1024;  // plans of mostly one mesh
  in_children(plans.size(), runs_.processes_here(), block, bound, [&](std::size_t done, std::size_t of) {
    progress({"bounding", done, of});
  });
  const Bytes limit = memory_limit(spec_);
  std::vector<std::pair<Bytes, std::size_t>> too_large;
  std::vector<std::size_t> may_fit;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto memory = static_cast<Bytes>(bounds.values()[2 * i]);
    if (memory > limit)
      too_large.emplace_back(memory, i);
    else
      may_fit.push_back(i);
  }
  find_pairs(plans, may_fit, progress);
  for (const std::size_t i : may_fit) {
    if (const Bytes memory = spec_.scenario.training.overlap_ep ? memory_bound_of(plans[i]).peak : 0; memory > limit) {
      too_large.emplace_back(memory, i);
      continue;
    }
    const Seconds time = bounds.values()[2 * i + 1];
    waiting_.emplace(score_of(plans[i], time), candidates_.size());
    candidates_.push_back({plans[i], time, score_of(plans[i], time), false});
  }
  counts_.without_memory = too_large.size();
  counts_.passes = costs_.passes().found();
  const std::size_t nearest = std::min(batch, too_large.size());
  std::ranges::partial_sort(too_large, too_large.begin() + static_cast<std::ptrdiff_t>(nearest));
  for (std::size_t i = 0; i < nearest; ++i) least_memory_.push_back(plans[too_large[i].second]);
  all_bounded_ = true;
}

/// The best waiting candidates, at most so many, whose refined bounds are below the limit.
std::vector<std::size_t> Search::next(std::size_t most, double limit, const std::function<bool(const Plan&)>& is_wanted) {
  std::vector<std::size_t> found;
  for (auto place = waiting_.begin(); place != waiting_.end() && place->first < limit && found.size() < most;) {
    const std::size_t index = place->second;
    Candidate& candidate = candidates_[index];
    if (!is_wanted(candidate.plan)) {
      ++place;
    } else if (candidate.is_refined) {
      found.push_back(index);
      ++place;
    } else {
      check_time_();
      candidate.bound = std::max(candidate.bound, time_bound(candidate.plan));
      candidate.score = score_of(candidate.plan, candidate.bound);
      candidate.is_refined = true;
      ++counts_.refined;
      const auto after = waiting_.erase(place);
      const auto again = waiting_.emplace(candidate.score, index).first;
      place = after == waiting_.end() || *again < *after ? again : after;
    }
  }
  return found;
}

void Search::simulate(const std::vector<std::size_t>& candidates, const Progress& progress) {
  std::vector<Plan> plans;
  for (const std::size_t index : candidates) {
    const Candidate& candidate = candidates_[index];
    plans.push_back(candidate.plan);
    bounds_[candidate.plan] = candidate.bound;
    waiting_.erase({candidate.score, index});
  }
  runs_.run(plans, [&](std::size_t running) { progress({"simulating", runs_.all().size(), runs_.all().size() + running}); });
  if (const std::vector<RatedPlan> best = ranked(); !best.empty())
    progress({"simulating", runs_.all().size(), runs_.all().size(), best.front()});
}

std::vector<RatedPlan> Search::simulated() const {
  std::vector<RatedPlan> plans;
  for (const auto& [plan, bound] : bounds_) {
    if (!runs_.knows(plan)) continue;  // time was over before
    if (const StepResult* step = runs_.of(plan).result()) plans.push_back({plan, bound, *step, score_of(plan, step->step_time)});
  }
  return plans;
}

/// What keeps to the constraints, best first.
std::vector<RatedPlan> Search::ranked() const {
  std::vector<RatedPlan> plans = simulated();
  std::erase_if(plans, [&](const RatedPlan& rated) { return !shortfall(spec_, rated.step).none(); });
  std::ranges::sort(plans, ranks_before);
  return plans;
}

BrokenRule Search::break_rule(const RuleOfThumb& rule, const Progress& progress) {
  BrokenRule broken;
  broken.name = rule.name;
  broken.plans = static_cast<std::size_t>(
      std::ranges::count_if(candidates_, [&](const Candidate& candidate) { return rule.is_broken(candidate.plan); }));
  for (std::size_t tried = 0;;) {
    for (const RatedPlan& rated : ranked()) {
      if (!rule.is_broken(rated.plan)) continue;
      broken.best = rated;
      break;
    }
    const double limit = broken.best ? broken.best->score : std::numeric_limits<double>::infinity();
    const std::size_t most = std::min(batch / 2, most_for_a_rule - tried);
    const std::vector<std::size_t> better = next(std::max<std::size_t>(1, most), limit, rule.is_broken);
    broken.is_proven = better.empty();
    if (better.empty() || most == 0) return broken;
    simulate(better, progress);
    tried += better.size();
  }
}

/// Of all that were simulated, and where memory is what lacks, of those whose bounds lack least of it.
RatedPlan Search::nearest(const Progress& progress) {
  for (const Plan& plan : least_memory_) bounds_[plan] = time_bound(plan);
  runs_.run(least_memory_, [&](std::size_t running) {
    progress({"simulating", runs_.all().size(), runs_.all().size() + running});
  });
  std::vector<RatedPlan> plans = simulated();
  if (plans.empty()) throw std::runtime_error("no plan could be simulated: " + runs_.all().begin()->second.failure()->text());
  const auto lack = [&](const RatedPlan& rated) {
    const Shortfall lacks = shortfall(spec_, rated.step);
    return std::tuple(lacks.memory, lacks.bubble + lacks.exposed, rated.score);
  };
  return *std::ranges::min_element(plans, {}, [&](const RatedPlan& rated) { return std::tuple(lack(rated), rated.plan); });
}

// The scenario's own plan is what the winner is held against, wherever it stands.
void Search::simulate_own(const Progress& progress) {
  const Plan& own = space_.own();
  if (runs_.knows(own)) return;
  runs_.run({own}, [&](std::size_t) { progress({"simulating", runs_.all().size(), runs_.all().size() + 1}); });
  if (space_.contains(own)) bounds_[own] = time_bound(own);
}

void Search::seek(SearchResult& result, const Progress& progress) {
  result.best_is_proven = false;
  const auto began = std::chrono::steady_clock::now();
  bound_all(progress);
  result.bounding = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (counts_.plans == 0) refuse_contradiction(spec_);

  const auto everything = [](const Plan&) { return true; };
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  for (std::size_t tried = 0;;) {
    const std::vector<RatedPlan> so_far = ranked();
    const bool for_ten = tried < most_for_ten;
    const double limit = so_far.size() >= best_shown && for_ten ? so_far[best_shown - 1].score
                         : !so_far.empty() && !for_ten          ? so_far.front().score
                                                                : no_limit;
    const std::vector<std::size_t> better = next(batch, limit, everything);
    result.best_is_proven = better.empty();
    if (better.empty() || tried >= most_for_winner) break;
    simulate(better, progress);
    tried += better.size();
  }

  simulate_own(progress);
  std::erase_if(waiting_, [&](const Place& place) { return candidates_[place.second].plan == space_.own(); });

  if (ranked().empty()) {
    result.nearest = nearest(progress);
  } else {
    std::int64_t least_pp = std::numeric_limits<std::int64_t>::max();
    for (const Candidate& candidate : candidates_) least_pp = std::min(least_pp, candidate.plan.pp);
    for (const RuleOfThumb& rule : rules_of_thumb(spec_, space_.choices(), least_pp)) {
      const BrokenRule broken = break_rule(rule, progress);
      if (broken.plans > 0) result.rules.push_back(broken);
    }
  }
}

std::optional<double> Search::gap_to(const RatedPlan& best) const {
  if (!all_bounded_) return {};
  double least = best.score;
  for (const Candidate& candidate : candidates_)
    if (!runs_.knows(candidate.plan)) least = std::min(least, candidate.score);
  return 1 - least / best.score;
}

SearchResult Search::run(const Progress& told, std::optional<Seconds> within) {
  SearchResult result;
  const auto began = std::chrono::steady_clock::now();
  if (within) {
    check_time_ = [=] {
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() >= *within) throw TimeIsOver();
    };
  }
  const Progress progress = [&](const SearchProgress& so_far) {
    told(so_far);
    check_time_();
  };
  const Plan& own = space_.own();
  result.own_is_among = space_.contains(own);
  try {
    if (within) simulate_own(progress);
    seek(result, progress);
  } catch (const TimeIsOver&) {
    result.ended_early = true;
    if (!all_bounded_) result.bounding = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  if (runs_.knows(own))
    if (const StepResult* step = runs_.of(own).result())
      result.own = RatedPlan{own, time_bound(own), *step, score_of(own, step->step_time)};

  result.best = ranked();
  Bytes least = std::numeric_limits<Bytes>::max();
  std::vector<RatedPlan> by_time = result.best;
  std::ranges::sort(
      by_time, {}, [](const RatedPlan& rated) { return std::tuple(rated.step.step_time, rated.step.peak_memory(), rated.plan); });
  for (const RatedPlan& rated : by_time) {
    if (rated.step.peak_memory() >= least) continue;
    least = rated.step.peak_memory();
    result.pareto.push_back(rated);
  }
  if (result.best.size() > best_shown) result.best.resize(best_shown);
  if (!result.best.empty()) result.gap = gap_to(result.best.front());
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  double open_score = 0;  // below which a plan may stand that was not simulated
  if (result.best_is_proven && !result.ended_early) {
    const std::vector<std::size_t> open = next(1, no_limit, [](const Plan&) { return true; });
    open_score = open.empty() ? no_limit : candidates_[open.front()].score;
  } else if (result.best_is_proven && !result.best.empty()) {
    open_score = result.best.front().score;
  }
  result.proven = static_cast<std::size_t>(
      std::ranges::count_if(result.best, [&](const RatedPlan& rated) { return rated.score <= open_score; }));

  for (const auto& [plan, outcome] : runs_.all()) {
    const StepFailure* failure = outcome.failure();
    ++(failure == nullptr ? counts_.simulated : failure->refused ? counts_.refused : counts_.failed);
  }
  const double best_score = result.best.empty() ? no_limit : result.best.front().score;
  for (const Candidate& candidate : candidates_)
    if (!runs_.knows(candidate.plan))
      ++(result.best_is_proven || candidate.score >= best_score ? counts_.too_slow : counts_.left);
  result.counts = counts_;
  return result;
}

}  // namespace tandem::studies
