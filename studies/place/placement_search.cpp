#include "studies/place/placement_search.h"

#include <algorithm>
#include <future>
#include <stdexcept>

#include "studies/place/first_placements.h"
#include "studies/place/judge.h"
#include "studies/place/placement_store.h"
#include "studies/runner/scenario_hash.h"

namespace tandem::studies {
namespace {

/// Adds a candidate unless an earlier one has the same placement.
void add(std::vector<PlacementCandidate>& candidates, PlacementCandidate candidate) {
  const bool is_known =
      std::ranges::any_of(candidates, [&](const PlacementCandidate& other) { return other.nodes == candidate.nodes; });
  if (!is_known) candidates.push_back(std::move(candidate));
}

std::string key_of(const PlacedJob& job, const PlacementCandidate& start, const PlacementBudget& budget) {
  std::string text = job.text(start.nodes) + "\n" + std::to_string(budget.seed) + " " + std::to_string(budget.moves) + " free";
  for (const std::uint32_t node : job.free()) text += " " + std::to_string(node);
  return hash_of_scenario(text);
}

/// Searches, `jobs` at once, from each start whose end the store does not know. Returns where each start led.
std::vector<NodeOfBlock> search_from_all(const PlacedJob& job, const std::vector<PlacementCandidate>& starts,
                                         const LinkLoad& load, const NodeSites& sites, const PlacementBudget& budget,
                                         PlacementStore& store, std::size_t jobs) {
  std::vector<std::optional<NodeOfBlock>> found;
  for (const PlacementCandidate& start : starts) found.push_back(store.find(key_of(job, start, budget)));
  for (std::size_t first = 0; first < starts.size();) {
    std::vector<std::pair<std::size_t, std::future<NodeOfBlock>>> running;
    for (; first < starts.size() && running.size() < jobs; ++first) {
      if (found[first]) continue;
      running.emplace_back(first, std::async(std::launch::async, [&, first] {
                             LinkLoad from = load;
                             from.place(starts[first].nodes);
                             return search_from(std::move(from), sites, job.free(), budget).nodes;
                           }));
    }
    for (auto& [start, search] : running) {
      found[start] = search.get();
      store.store(key_of(job, starts[start], budget), *found[start]);
    }
  }
  std::vector<NodeOfBlock> nodes;
  for (auto& of_start : found) nodes.push_back(std::move(*of_start));
  return nodes;
}

/// Simulates packed and the few that load links least.
void simulate_best(const PlacedJob& job, std::vector<PlacementCandidate>& candidates, ResultsDatabase& database, std::size_t jobs,
                   const OnRunProgress& told) {
  constexpr std::size_t most = 4;  // with packed
  std::stable_sort(candidates.begin() + 1, candidates.end(),
                   [](const PlacementCandidate& a, const PlacementCandidate& b) { return a.load < b.load; });
  std::vector<NodeOfBlock> placements;
  for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) placements.push_back(candidates[i].nodes);
  std::vector<StepOutcome> outcomes = judge_placements(job, placements, database, jobs, told);
  for (std::size_t i = 0; i < outcomes.size(); ++i) candidates[i].outcome = std::move(outcomes[i]);
}

}  // namespace

std::string PlacementCandidate::message() const {
  return outcome && outcome->failure() != nullptr ? outcome->failure()->text() : "";
}

PlacementSearch search_placement(const PlacedJob& job, const StepTraffic& traffic, const PlacementBudget& budget,
                                 const std::string& study, std::size_t jobs, const OnRunProgress& told) {
  ResultsDatabase database(study);
  PlacementStore store(study);
  LinkLoad load(job.packed_scenario(), traffic, job.packed());
  const NodeSites sites(load.cluster());
  const auto blocks = static_cast<std::size_t>(job.blocks());
  const auto start = [&](const char* name, NodeOfBlock nodes) {
    load.place(nodes);
    return PlacementCandidate{.name = name, .nodes = std::move(nodes), .load = load.load()};
  };

  PlacementSearch search;
  std::vector<PlacementCandidate>& candidates = search.candidates;
  add(candidates, start("packed", job.packed()));
  add(candidates, start("sorted by leaf", sorted_by_leaf(job.free(), blocks, sites)));
  add(candidates, start("bisected", bisected(job.free(), blocks, sites, traffic, job.packed_scenario().cluster.gpus_per_node)));
  const std::vector<PlacementCandidate> starts = candidates;
  const std::vector<NodeOfBlock> found = search_from_all(job, starts, load, sites, budget, store, jobs);
  for (std::size_t i = 0; i < starts.size(); ++i) add(candidates, start(("searched from " + starts[i].name).c_str(), found[i]));

  simulate_best(job, candidates, database, jobs, told);
  const StepResult* packed = search.packed().step();
  if (packed == nullptr) throw std::runtime_error("the packed placement cannot be simulated: " + search.packed().message());
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const StepResult* step = candidates[i].step();
    if (step != nullptr && step->fits() == packed->fits() && step->step_time < search.found_time()) search.best = i;
  }
  return search;
}

}  // namespace tandem::studies
