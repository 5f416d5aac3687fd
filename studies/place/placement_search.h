#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/place/link_load.h"
#include "studies/place/local_search.h"
#include "studies/place/placed_job.h"
#include "studies/runner/run_progress.h"
#include "studies/runner/step_job.h"

namespace tandem::studies {

/// One way of placing the job.
struct PlacementCandidate {
  std::string name;  ///< how it came about
  NodeOfBlock nodes;
  LinkTimes load;
  std::optional<StepOutcome> outcome = {};  ///< of its simulation, where there was one

  const StepResult* step() const { return outcome ? outcome->result() : nullptr; }  ///< null where there is none
  std::string message() const;                                                      ///< of one that failed; else empty
};

/// The placements that were compared. The first candidate is packed: block after block on the free nodes in the order given.
struct PlacementSearch {
  std::vector<PlacementCandidate> candidates;
  std::size_t best = 0;

  const PlacementCandidate& packed() const { return candidates.front(); }
  const PlacementCandidate& found() const { return candidates[best]; }
  Seconds packed_time() const { return packed().step()->step_time; }
  Seconds found_time() const { return found().step()->step_time; }
};

/// Searches from three placements: packed, sorted by leaf, and bisected. Simulates packed and those of least load; the one with
/// the least step time wins, packed where no other is faster. `study` is the SQLite file that keeps searches and simulations: the
/// same call takes up what the file holds. `jobs` searches and simulations run at once, which changes nothing but the time.
///
/// Throws std::runtime_error where packed cannot be simulated or the file fails, InputError where the scenario is wrong.
PlacementSearch search_placement(const PlacedJob& job, const StepTraffic& traffic, const PlacementBudget& budget,
                                 const std::string& study, std::size_t jobs, const OnRunProgress& told = {});

}  // namespace tandem::studies
