#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/chakra.h"

namespace tandem::studies {

/// Process groups by their names: world ranks.
using ChakraGroups = std::map<std::string, std::vector<std::uint32_t>>;

/// The traces of a run, and what lies beside them.
struct ChakraFiles {
  std::string name;  ///< what the names of the traces begin with: "trace" of trace.0.et
  std::map<std::uint32_t, ChakraTrace> ranks;
  ChakraGroups groups;               ///< of a file such as comm_group.json, as ASTRA-sim reads it
  std::vector<std::string> assumed;  ///< what the files' names do not say
  std::vector<std::string> ignored;  ///< other JSON files of a folder
};

/// Reads traces, NAME.RANK.et, one of each rank, and JSON files of process groups: {"1": [0, 1], ...}. A path may be a folder of
/// them. Throws InputError where a file is neither, or two are of one rank, or of runs of different names.
ChakraFiles read_chakra_files(const std::vector<std::string>& paths);

}  // namespace tandem::studies
