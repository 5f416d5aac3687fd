#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/chakra/chakra_files.h"
#include "studies/recorded/recorded_run.h"
#include "topology/cluster_spec.h"

namespace tandem::studies {

/// The attributes by which Tandem tells more of a node than Chakra's schema has a place for.
inline constexpr std::string_view exact_duration = "duration_nanos";  ///< a double
inline constexpr std::string_view node_phase = "phase";               ///< "forward"
inline constexpr std::string_view group_axis = "axis";                ///< "tp"
inline constexpr std::string_view group_description = "pg_desc";      ///< as PyTorch calls it
inline constexpr std::string_view node_stream = "stream";             ///< as PyTorch's converter calls it

/// The traces of a run as one recorded step.
struct ChakraRun {
  RecordedRun run;
  std::size_t nodes = 0;  ///< in all files; of each there is a task
  std::vector<std::string> assumed, warnings;
};

/// Reads the step: compute nodes are kernels, or tasks of the host (`is_cpu_op`), that take their durations; collectives are of
/// the groups that `pg_name` names, the n-th of a group the same for all its members; a send meets the receive of its source,
/// destination and tag, the n-th the n-th.
///
/// The run has `gpus` ranks, or as many as there are traces, or as their groups need. Where the traces that are there are all
/// alike and exchange among all ranks alone, the others are taken for the same. Compute nodes without duration, but with
/// operations and bytes, take what the GPU of the cluster needs for these; loads and stores without, what its link to the host
/// does.
///
/// Throws InputError where ranks are missing, groups are not known, or members of a collective disagree.
ChakraRun recorded_run_of(const ChakraFiles& files, std::int64_t gpus, const ClusterSpec& cluster);

}  // namespace tandem::studies
