#include "studies/place/place.h"

#include "runtime/base/input_error.h"
#include "topology/fabric.h"

namespace tandem::studies {

PlacementResult place(const PlacedJob& job, const std::string& file, const PlacementBudget& budget, const std::string& study,
                      std::size_t jobs, const OnRunProgress& told) {
  try {
    const StepTraffic traffic = traffic_of_step(job.packed_scenario());
    return placement_result(job, traffic, search_placement(job, traffic, budget, study, jobs, told));
  } catch (const TopologyError& error) {
    throw InputError({file, 0, 0}, error.what());
  }
}

}  // namespace tandem::studies
