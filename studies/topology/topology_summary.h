#pragma once

#include <string>
#include <vector>

#include "scenarios/mesh/communicator_rows.h"
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

/// Counts what the scenario's cluster is made of, and lays its communicators on it.
TopologySummary summarize_topology(const Scenario& scenario);

/// Returns the stable JSON form: SI units, one line per key. A range is [least, most].
std::string to_json(const TopologySummary& summary);

}  // namespace tandem::studies
