#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/mesh/communicator_rows.h"
#include "studies/place/placement_search.h"

namespace tandem::studies {

/// What `tandem place` says.
struct PlacementResult {
  struct Family {
    std::string name;                             ///< of communicators: "dp", "pp forward"
    std::map<Reach, std::int64_t> packed, found;  ///< how many reach how far
    std::int64_t lower = 0, higher = 0;           ///< that moved
  };
  std::string scenario;
  std::int64_t ranks = 0, gpus_per_node = 0;
  std::int64_t blocks = 0, free = 0, nodes = 0;  ///< nodes needed, free, and of the cluster
  PlacementSearch search;
  std::vector<PlacedJob::HostSlots> hosts;  ///< of the placement found, in the order of the ranks; none without names
  std::array<TierLoad, 3> packed{}, found{};
  std::vector<Family> families;       ///< those that leave their node
  std::vector<std::string> warnings;  ///< of the scenario

  double gain() const { return search.packed_time() / search.found_time() - 1; }
};

/// Sums up what a search found.
PlacementResult placement_result(const PlacedJob& job, const StepTraffic& traffic, PlacementSearch search);

/// Returns the stable JSON form, in SI units.
std::string to_json(const PlacementResult& result);

/// Returns the text of a file that `parallelism.placement: {file: ..}` reads (scenarios/reading/placement_file.h). The text is a
/// list in YAML as well.
std::string placement_file_text(const PlacedJob& job, const PlacementSearch& search);

/// Returns the hosts of the placement in the order of their ranks, as mpirun and DeepSpeed read them: "tux3 slots=8". With
/// torchrun, the number of a line from 0 is the --node-rank of its host.
std::string hostfile_text(const PlacementResult& result);

}  // namespace tandem::studies
