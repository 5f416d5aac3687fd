#include "studies/relief/relief.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>

#include "studies/relief/levers.h"
#include "studies/runner/distinct_steps.h"
#include "studies/search/memory_bound.h"
#include "studies/search/step_bound.h"

namespace tandem::studies {
namespace {

constexpr std::size_t at_a_time = 4;  // simulations between two looks at the bounds, whatever the number of processes
constexpr std::size_t widest = 8;     // combinations that are pulled further, from three levers on

/// What of one number of levers is simulated at most: so many combinations, with graphs of so many tasks in all. A combination
/// whose graph is much larger than the scenario's is left out, as it may take minutes and gigabytes.
constexpr std::size_t most_simulated = 24;
double most_tasks(const StepResult& step) { return std::max(3e6, 8 * static_cast<double>(step.tasks)); }
double largest_graph(const StepResult& step) { return std::max(3e6, 2 * static_cast<double>(step.tasks)); }

/// A lever and one of its settings.
using Pull = std::pair<std::size_t, std::size_t>;
/// In ascending order, each lever once.
using Combination = std::vector<Pull>;

struct Candidate {
  Combination pulled;
  Bytes memory = 0;  ///< at least
  Seconds time = 0;  ///< at least
  double tasks = 0;  ///< about
};

/// What the tasks of a rank grow with: its micro-batches, each with so many hops of a ring.
double passes_of(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  return static_cast<double>(scenario.training.micro_batches(p)) *
         static_cast<double>(p.cp_method == CpMethod::all_gather ? 1 : p.ring_ranks());
}

class ReliefSearch {
 public:
  ReliefSearch(const ScenarioSource& source, const Scenario& scenario, const StepResult& step, Bytes limit,
               const ReliefOptions& options)
      : source_(source),
        scenario_(scenario),
        peak_(step.peak_memory()),
        limit_(limit),
        most_tasks_(most_tasks(step)),
        largest_graph_(largest_graph(step)),
        tasks_per_hop_(static_cast<double>(step.tasks) / passes_of(scenario)),
        options_(options),
        steps_(options.jobs) {
    for (const Lever& lever : levers()) settings_.push_back(lever.settings(scenario));
  }

  ReliefResult run() {
    std::vector<Candidate> level = bounded(extended({Combination{}}));
    for (std::size_t pulls = 1; !level.empty(); ++pulls) {
      simulate_fastest(level);
      if (pulls == 1) {
        simulate_each_lever(level);
        fill_alone();
      } else if (fastest()) {
        break;
      } else {
        keep_least_memory(level);
      }
      std::vector<Combination> open;
      for (Candidate& candidate : level) open.push_back(std::move(candidate.pulled));
      level = bounded(extended(open));
    }
    result_.plan = fastest();
    if (!result_.plan) {
      std::vector<Combination> next;
      for (const Candidate& candidate : leanest_) next.push_back(candidate.pulled);
      simulate(next);
      result_.least = least();
    }
    result_.simulated = reliefs_.size();
    return std::move(result_);
  }

 private:
  const ScenarioSource& source_;
  const Scenario& scenario_;
  Bytes peak_, limit_;
  double most_tasks_, largest_graph_, tasks_per_hop_;
  const ReliefOptions& options_;
  DistinctSteps steps_;
  StageCostModel costs_;
  Schedules schedules_;
  std::vector<std::vector<LeverSetting>> settings_;  ///< by lever
  std::map<Combination, Relief> reliefs_;            ///< simulated
  std::vector<Candidate> leanest_;                   ///< of all that were bounded the few with the lowest bounds of memory
  ReliefResult result_;

  std::vector<std::string> changes_of(const Combination& pulled) const {
    std::vector<std::string> changes;
    std::int64_t replicas = 1;
    for (const auto& [lever, setting] : pulled) {
      const LeverSetting& of = settings_[lever][setting];
      changes.insert(changes.end(), of.changes.begin(), of.changes.end());
      replicas *= of.replicas;
    }
    if (replicas > 1) changes.push_back(fmt::format("parallelism.dp={}", scenario_.parallelism.dp / replicas));
    return changes;
  }

  bool leaves_replicas(const Combination& pulled) const {
    std::int64_t replicas = 1;
    for (const auto& [lever, setting] : pulled) replicas *= settings_[lever][setting].replicas;
    return scenario_.parallelism.dp % replicas == 0;
  }

  /// The combinations with one more lever, each once.
  std::set<Combination> extended(const std::vector<Combination>& from) const {
    std::set<Combination> all;
    for (const Combination& pulled : from) {
      for (std::size_t lever = 0; lever < settings_.size(); ++lever) {
        if (std::ranges::find(pulled, lever, &Pull::first) != pulled.end()) continue;
        for (std::size_t setting = 0; setting < settings_[lever].size(); ++setting) {
          Combination more = pulled;
          more.insert(std::ranges::upper_bound(more, Pull{lever, setting}), Pull{lever, setting});
          if (leaves_replicas(more)) all.insert(std::move(more));
        }
      }
    }
    return all;
  }

  /// Those that the scenario admits.
  std::vector<Candidate> bounded(const std::set<Combination>& combinations) {
    std::vector<Candidate> level;
    std::vector<Scenario> scenarios;
    for (const Combination& pulled : combinations) {
      std::optional<StepJob> job = source_.changed(changes_of(pulled));
      if (!job) continue;
      level.push_back({.pulled = pulled});
      scenarios.push_back(std::get<Scenario>(std::move(job->scenario)));
      costs_.passes().ask_for(scenarios.back());
    }
    costs_.passes().find(options_.jobs, [](std::size_t, std::size_t) {});
    for (std::size_t i = 0; i < level.size(); ++i) {
      const StageCosts costs = costs_.of(scenarios[i]);
      level[i].memory = memory_bound(scenarios[i], costs, schedules_).peak;
      level[i].tasks = tasks_per_hop_ * passes_of(scenarios[i]);
      if (level[i].tasks <= largest_graph_) note_memory(level[i]);
      if (level[i].memory <= limit_)
        level[i].time = std::max(coarse_step_bound(scenarios[i], costs), step_bound(scenarios[i], costs, schedules_));
    }
    result_.tried += level.size();
    return level;
  }

  void note_memory(const Candidate& candidate) {
    leanest_.insert(std::ranges::upper_bound(leanest_, candidate.memory, {}, &Candidate::memory), candidate);
    if (leanest_.size() > at_a_time) leanest_.pop_back();
  }

  /// Of those that may fit.
  void simulate_fastest(const std::vector<Candidate>& level) {
    std::vector<const Candidate*> may_fit;
    for (const Candidate& candidate : level)
      if (candidate.memory <= limit_ && candidate.tasks <= largest_graph_) may_fit.push_back(&candidate);
    std::ranges::stable_sort(may_fit, {}, &Candidate::time);
    const std::size_t most = std::min(may_fit.size(), most_simulated);
    double tasks = 0;
    for (std::size_t from = 0; from < most && tasks < most_tasks_; from += at_a_time) {
      const std::optional<Relief> best = fastest();
      if (best && best->step_time <= may_fit[from]->time) break;
      std::vector<Combination> next;
      for (std::size_t i = from; i < std::min(most, from + at_a_time); ++i) {
        next.push_back(may_fit[i]->pulled);
        tasks += may_fit[i]->tasks;
      }
      simulate(next);
    }
  }

  /// So that something can be said of each lever alone: of those of which nothing was simulated, the setting that takes least.
  void simulate_each_lever(const std::vector<Candidate>& singles) {
    std::map<std::size_t, const Candidate*> least;
    for (const Candidate& candidate : singles) {
      if (candidate.tasks > largest_graph_) continue;
      const Candidate*& of_lever = least[candidate.pulled.front().first];
      if (of_lever == nullptr || candidate.memory < of_lever->memory) of_lever = &candidate;
    }
    std::vector<Combination> next;
    for (const auto& [lever, candidate] : least)
      if (std::ranges::none_of(reliefs_, [&](const auto& known) { return known.first.front().first == lever; }))
        next.push_back(candidate->pulled);
    simulate(next);
  }

  void simulate(const std::vector<Combination>& combinations) {
    std::map<Combination, std::string> texts;
    for (const Combination& pulled : combinations) {
      std::optional<StepJob> job = source_.changed(changes_of(pulled));
      texts.emplace(pulled, job->text);
      steps_.want(std::move(*job));
    }
    steps_.run(options_.told);
    for (const auto& [pulled, text] : texts) {
      const StepResult* step = steps_.of(text).result();
      if (step == nullptr) continue;  // failed: it makes nothing fit
      Relief relief{.levers = {}, .change = changes_of(pulled), .peak = step->peak_memory(), .step_time = step->step_time};
      for (const Pull& pull : pulled) relief.levers.emplace_back(levers()[pull.first].name);
      relief.fits = relief.peak <= limit_;
      reliefs_.emplace(pulled, std::move(relief));
    }
  }

  static bool is_better(const Relief& a, const Relief& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.step_time < b.step_time : a.peak < b.peak;
  }

  void fill_alone() {
    std::map<std::size_t, const Relief*> best;
    for (const auto& [pulled, relief] : reliefs_) {
      const Relief*& of_lever = best[pulled.front().first];
      if (of_lever == nullptr || is_better(relief, *of_lever)) of_lever = &relief;
    }
    for (const auto& [lever, relief] : best)
      if (relief->peak < peak_) result_.alone.push_back(*relief);
  }

  std::optional<Relief> fastest() const {
    std::optional<Relief> best;
    for (const auto& [pulled, relief] : reliefs_)
      if (relief.fits && (!best || relief.step_time < best->step_time)) best = relief;
    return best;
  }

  std::optional<Relief> least() const {
    std::optional<Relief> best;
    for (const auto& [pulled, relief] : reliefs_)
      if (relief.peak < peak_ && (!best || relief.peak < best->peak)) best = relief;
    return best;
  }

  static void keep_least_memory(std::vector<Candidate>& level) {
    std::ranges::stable_sort(level, {}, &Candidate::memory);
    if (level.size() > widest) level.resize(widest);
  }
};

}  // namespace

ReliefResult find_relief(const ScenarioSource& source, const Scenario& scenario, const StepResult& step, Bytes limit,
                         const ReliefOptions& options) {
  return ReliefSearch(source, scenario, step, limit, options).run();
}

}  // namespace tandem::studies
