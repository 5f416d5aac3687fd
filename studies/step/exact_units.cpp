#include "studies/step/exact_units.h"

#include <algorithm>
#include <stdexcept>

namespace tandem::studies {
namespace {

using scenarios::Slot;
using scenarios::slot_count;

bool receives(std::size_t slot) {
  switch (scenarios::context_group_of(static_cast<Slot>(slot)).first) {
    case Slot::receive_tensor:
    case Slot::receive_context:
    case Slot::receive_forward:
    case Slot::receive_backward:
    case Slot::receive_forward_descending:
    case Slot::receive_backward_descending:
      return true;
    default:
      return false;
  }
}

}  // namespace

ExactUnits::ExactUnits(const World& exact, const World& coarse, const Dag& dag)
    : exact_(exact), coarse_(coarse), dag_(dag), ranks_(coarse.ranks.size()), communicators_(coarse.communicators.size()) {
  for (RankIndex rank = 0; rank < exact.ranks.size(); ++rank) {
    const RankIndex alike = coarse.class_of[exact.ranks[rank].world_rank];
    ranks_[alike].push_back(rank);
    const auto &of_exact = exact.communicator_of[rank], &of_coarse = coarse.communicator_of[alike];
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      if (of_exact[slot] == no_id) continue;
      communicators_[of_coarse[slot]].push_back(of_exact[slot]);
      for (std::size_t other = 0; other < slot; ++other)
        if (of_coarse[other] == of_coarse[slot] && receives(other) == receives(slot) && of_exact[other] != of_exact[slot])
          is_clear_ = false;
    }
  }
  for (std::vector<CommunicatorId>& found : communicators_) {
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
  }
}

std::size_t ExactUnits::slot_of(const Task& task) const {
  const CommunicatorId communicator = dag_.groups[task.group].communicator;
  for (std::size_t slot = 0; slot < slot_count; ++slot)
    if (coarse_.communicator_of[task.rank][slot] == communicator && receives(slot) == (task.op == OpKind::receive)) return slot;
  throw std::logic_error("a rank communicates through no slot of its own");
}

ExactUnit ExactUnits::unit_of(const ExactTask& task) const {
  const Task& of_coarse = dag_.tasks[task.task];
  if (of_coarse.group == no_id) return {.is_communication = false, .what = task.task, .where = task.rank};
  return {.is_communication = true, .what = of_coarse.group, .where = exact_.communicator_of[task.rank][slot_of(of_coarse)]};
}

std::vector<ExactTask> ExactUnits::members_of(const ExactUnit& unit) const {
  if (!unit.is_communication) return {{unit.where, unit.what}};
  std::vector<ExactTask> members;
  for (const TaskId task : dag_.members_of(unit.what)) {
    const std::size_t slot = slot_of(dag_.tasks[task]);
    for (const RankIndex rank : ranks_[dag_.tasks[task].rank])
      if (exact_.communicator_of[rank][slot] == unit.where) members.push_back({rank, task});
  }
  return members;
}

}  // namespace tandem::studies
