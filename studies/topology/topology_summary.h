#pragma once

#include <string>
#include <vector>

#include "scenarios/mesh/mesh_report.h"
#include "scenarios/spec/scenario.h"
#include "topology/inventory.h"

namespace tandem::studies {

/// What `tandem topology` says of a scenario.
struct TopologySummary {
  std::string scenario;
  ClusterSpec cluster;
  Inventory inventory;
  std::vector<CommunicatorRow> communicators;
  std::vector<std::string> warnings;  ///< of the scenario
};

TopologySummary summarize_topology(const Scenario& scenario);

/// The stable JSON form: SI units, one line per key. What lies between two values is [least, most].
std::string to_json(const TopologySummary& summary);

}  // namespace tandem::studies
