#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// What was written.
struct ChakraWritten {
  std::size_t ranks = 0, nodes = 0;
  std::vector<std::string> notes;  ///< what the files do not say
};

/// Writes a scenario's simulated step as Chakra execution traces into a folder: step.RANK.et of each of `ranks`, or of all where
/// there are none, and comm_group.json, which states the process groups as ASTRA-sim reads them.
///
/// - A kernel is a compute node with its duration in the simulation, `num_ops` and `tensor_size`. Durations are in whole
///   microseconds from the step's beginning on, so that they add up over a rank, and exact in an attribute of our own.
/// - A collective is a node with its `comm_type`, what a rank puts in (`comm_size`) and its group (`pg_name`); a transfer a send
///   and a receive with source, destination and a tag that no other message of the two has.
/// - A copy to the host is a store, one back a load. What the host computes is a compute node of the CPU, and so is the time that
///   the CPU takes to issue a task, which the task then waits for.
/// - A node waits for what its task waits for in the graph: buffers and the order of streams.
///
/// Throws InputError for a scenario of more ranks than can be lowered, std::runtime_error where a file cannot be written.
ChakraWritten write_chakra(const Scenario& scenario, std::span<const std::uint32_t> ranks, const std::string& folder);

}  // namespace tandem::studies
