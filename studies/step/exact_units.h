#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/mesh/world.h"

namespace tandem::studies {

using scenarios::World;

/// A kernel of a class of ranks, or a collective or transfer of a class of communicators, of an exact fold; told by the graph of
/// a coarser one.
struct ExactUnit {
  bool is_communication = false;
  std::uint32_t what = 0;   ///< a TaskId, or a GroupId
  std::uint32_t where = 0;  ///< a RankIndex of the exact fold, or a CommunicatorId
  auto operator<=>(const ExactUnit&) const = default;
};

/// A task of the coarser fold's graph, as a class of ranks of the exact fold does it.
struct ExactTask {
  RankIndex rank = 0;
  TaskId task = 0;
  auto operator<=>(const ExactTask&) const = default;
};

/// Which units of the exact fold the tasks of a coarser one stand for. The coarser fold's classes are unions of the exact one's.
class ExactUnits {
 public:
  /// All must outlive it. `dag` was lowered on `coarse`.
  ExactUnits(const World& exact, const World& coarse, const Dag& dag);

  /// Whether there is one answer to all that is asked below. There may be none where a rank plays two roles in one class of
  /// communicators.
  bool is_clear() const { return is_clear_; }

  const std::vector<RankIndex>& ranks_of(RankIndex coarse) const { return ranks_[coarse]; }
  const std::vector<CommunicatorId>& communicators_of(CommunicatorId coarse) const { return communicators_[coarse]; }

  ExactUnit unit_of(const ExactTask& task) const;
  /// The tasks that start and end together.
  std::vector<ExactTask> members_of(const ExactUnit& unit) const;
  /// Any of them in the graph of the coarser fold.
  TaskId task_of(const ExactUnit& unit) const { return unit.is_communication ? dag_.members_of(unit.what).front() : unit.what; }

 private:
  const World &exact_, &coarse_;
  const Dag& dag_;
  bool is_clear_ = true;
  std::vector<std::vector<RankIndex>> ranks_;
  std::vector<std::vector<CommunicatorId>> communicators_;

  /// The slot through which a rank does a task of communication.
  std::size_t slot_of(const Task& task) const;
};

}  // namespace tandem::studies
