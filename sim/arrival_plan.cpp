#include "sim/arrival_plan.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tandem::sim {

ArrivalPlan::ArrivalPlan(const Dag& dag) : memberships(dag.tasks.size()), spans(dag) {
  first_arrival.reserve(dag.tasks.size() + 1);
  first_arrival.push_back(0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    first_arrival.push_back(first_arrival.back() + std::max<std::size_t>(1, dag.graph.successors(id).size()));

  struct OnRank {
    TaskId first = no_id;
    double tasks = 0;
  };
  std::unordered_map<RankIndex, OnRank> on_ranks;
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    on_ranks.clear();
    double lowered = 0;  // ranks that the lowered members stand for
    for (const TaskId id : dag.members_of(group)) {
      OnRank& on_rank = on_ranks.try_emplace(dag.tasks[id].rank, OnRank{.first = id}).first->second;
      ++on_rank.tasks;
      lowered += dag.ranks[dag.tasks[id].rank].count;
    }
    const auto members = static_cast<double>(dag.communicators[dag.groups[group].communicator].members.size());
    for (const TaskId id : dag.members_of(group)) {
      const RankIndex rank = dag.tasks[id].rank;
      const OnRank& on_rank = on_ranks[rank];
      const double alike = members * on_rank.tasks * dag.ranks[rank].count / lowered;
      memberships[id] = {on_rank.first, static_cast<std::uint32_t>(std::lround(alike))};
    }
  }
}

}  // namespace tandem::sim
