#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/analysis/predecessors.h"
#include "runtime/dag/dag.h"
#include "traces/chakra.h"

namespace tandem::studies {

/// The numbers that all ranks' traces of one step share, however many of them are written.
struct ChakraNumbers {
  std::vector<std::int64_t> group_names;  ///< by communicator: of the process group; 0: it has no collectives
  std::vector<std::int64_t> tags;         ///< by group of tasks: of the message

  /// Process groups are numbered as the DAG's communicators, from 1 on, as ASTRA-sim takes 0 for all ranks. Messages count from 0
  /// between each two ranks, those of their communicators by turns.
  explicit ChakraNumbers(const Dag& dag);
};

/// Writes the nodes of ranks of a DAG in which each rank stands for itself alone.
class RankWriter {
 public:
  /// `start` and `end`: by task.
  RankWriter(const Dag& dag, const std::vector<Seconds>& start, const std::vector<Seconds>& end);

  /// Writes a rank's tasks in the order in which they were lowered. Returns how many nodes that took.
  std::size_t write(RankIndex rank, ChakraWriter& out);

  const ChakraNumbers& numbers() const { return numbers_; }

 private:
  const Dag& dag_;
  const std::vector<Seconds>&start_, &end_;
  ChakraNumbers numbers_;
  Predecessors predecessors_;
  std::vector<std::vector<TaskId>> tasks_of_rank_;
  std::vector<std::uint64_t> node_of_;  ///< by task
  bool issues_for_free_;

  /// The CPU of the rank that is written.
  struct Issuing {
    std::uint64_t next_node = 0;
    bool has_last = false;
    std::uint64_t last = 0;         ///< its last node
    Seconds free = 0;               ///< when that ends, for whole microseconds
    std::vector<TaskId> waits_for;  ///< tasks that have to end before it goes on
  };
  std::uint64_t issue(TaskId task, Seconds time, Issuing& cpu, ChakraWriter& out);
  chakra::Node node_of(TaskId task) const;
  void describe_kernel(TaskId task, chakra::Node& node) const;
  void describe_exchange(TaskId task, chakra::Node& node) const;
};

}  // namespace tandem::studies
