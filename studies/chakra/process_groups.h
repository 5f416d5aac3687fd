#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/chakra/chakra_files.h"
#include "studies/chakra/rank_nodes.h"

namespace tandem::studies {

/// The process groups of a run, and how many ranks it has.
///
/// A group's name is looked up among those that the rank's own metadata nodes state (PyTorch's `process_group:init`), then in the
/// files of groups; without a name, or as "0" where nobody states that, it is all ranks (astra-sim, workload/Workload.cc).
class ProcessGroups {
 public:
  /// `gpus`: 0 where nobody said how many there are.
  ProcessGroups(const ChakraFiles& files, std::int64_t gpus);

  std::uint32_t world() const { return world_; }
  bool is_world_told() const { return is_told_; }
  /// Throws InputError where nothing states the group, or the rank is not in it, or it has ranks that the run has not.
  const std::vector<std::uint32_t>& members(const ChakraTrace& trace, std::uint32_t rank, const chakra::Node& node,
                                            const std::string& name) const;

 private:
  ChakraGroups of_files_;
  std::map<std::uint32_t, ChakraGroups> of_ranks_;  ///< by rank; all ranks where there are none
  std::vector<std::uint32_t> all_;
  std::uint32_t world_ = 0;
  bool is_told_ = false;

  void read_metadata(std::uint32_t rank, const ChakraTrace& trace);
};

}  // namespace tandem::studies
