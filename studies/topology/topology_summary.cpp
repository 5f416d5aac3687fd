#include "studies/topology/topology_summary.h"

namespace tandem::studies {

TopologySummary summarize_topology(const Scenario& scenario) {
  return {.scenario = scenario.name,
          .cluster = scenario.cluster,
          .inventory = take_inventory(Cluster(scenario.cluster)),
          .communicators = communicator_rows(scenario),
          .warnings = scenario.warnings};
}

}  // namespace tandem::studies
