#pragma once

#include <optional>
#include <string>

#include "runtime/dag/timeline.h"
#include "runtime/launch/launcher.h"
#include "runtime/plan/graph_pieces.h"

namespace tandem {

/// What the processes of a launch measured together.
struct LaunchedStep {
  Timeline timeline;
  double loss = 0;
  std::optional<Seconds> undated_step = {};  ///< the slowest rank's, when no GPU recorded when its tasks begin and end
  std::size_t collectives = 0;               ///< that were exact on crafted contents
  std::string description;
};

/// Returns a text that tells a file from others. Throws std::runtime_error when it cannot be read.
std::string digest_of_file(const std::string& path);

/// Executes a DAG with the other processes of the launch, a GPU and a rank of the DAG each; the result on rank 0, nothing
/// elsewhere. `digest` of the DAG's file, which must be the same for all. A member of a collective is taken to start and end with
/// the last one. Before the step all distinct collectives are verified. The processes' clocks begin at a barrier, and differ by
/// what it takes to leave one. Throws std::runtime_error with the sentence that all processes end with.
std::optional<LaunchedStep> execute_with_others(const Launch& launch, const Dag& dag, const std::string& digest,
                                                GraphScope graphs);

/// What a process measured beside the times of its tasks.
struct OwnNumbers {
  double loss_share = 0;
  Seconds undated = 0;  ///< all steps of the DAG, without dates
};

/// Encodes what one process measured, to be sent to rank 0.
std::string own_measurement(const Dag& dag, RankIndex rank, const Timeline& timeline, const OwnNumbers& numbers);
/// `measurements` by rank. Throws std::runtime_error where one is not of its rank.
LaunchedStep merged(const Dag& dag, const std::vector<std::string>& measurements);

}  // namespace tandem
