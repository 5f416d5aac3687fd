#pragma once

#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// Returns the name under which results sum tasks: the operation, for communication with its axis: "gemm", "all_reduce (tp)".
std::string kind_of(const Dag& dag, TaskId id);

/// All tasks of one kind and phase, per rank and step: the mean over all ranks of the world and over the DAG's steps.
struct KindTime {
  std::string name;
  Phase phase = Phase::forward;
  double count = 0;
  Seconds time = 0;  ///< their durations added up, overlapped or not
  /// That time's standard error for speeds that were assumed (`GemmEfficiency::assumed`): they are wrong together.
  Seconds assumed = 0;
};

/// Most time first.
std::vector<KindTime> time_by_kind(const Dag& dag, const Timeline& timeline);

/// `a_weight` times `a` and `b_weight` times `b`, most time first.
std::vector<KindTime> weighted_sum(const std::vector<KindTime>& a, double a_weight, const std::vector<KindTime>& b,
                                   double b_weight);

}  // namespace tandem
