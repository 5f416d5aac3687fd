#include "runtime/plan/issue_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>

namespace tandem {

std::vector<TaskId> issue_order(const Dag& dag) {
  std::vector<std::uint32_t> place(dag.tasks.size()), of_rank(dag.ranks.size(), 0);  // in the rank's order of lowering
  for (TaskId id = 0; id < dag.tasks.size(); ++id) place[id] = of_rank[dag.tasks[id].rank]++;

  std::vector<std::uint32_t> waiting_for(dag.tasks.size(), 0), missing(dag.groups.size(), 0);
  for (const TaskId next : dag.graph.targets()) ++waiting_for[next];
  for (GroupId g = 0; g < dag.groups.size(); ++g) missing[g] = static_cast<std::uint32_t>(dag.members_of(g).size());

  using Ready = std::pair<std::uint32_t, TaskId>;  // the latest place of a member, and the first task
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  const auto release = [&](TaskId id) {
    const GroupId group = dag.tasks[id].group;
    if (group != no_id && --missing[group] > 0) return;
    std::uint32_t latest = 0;
    for (const TaskId member : dag.unit_of(id)) latest = std::max(latest, place[member]);
    ready.emplace(latest, dag.unit_of(id).front());
  };
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (waiting_for[id] == 0) release(id);

  std::vector<TaskId> order;
  std::size_t issued = 0;
  while (!ready.empty()) {
    const TaskId first = ready.top().second;
    ready.pop();
    order.push_back(first);
    for (const TaskId id : dag.unit_of(first)) {
      ++issued;
      for (const TaskId next : dag.graph.successors(id)) {
        if (--waiting_for[next] == 0) release(next);
      }
    }
  }
  if (issued != dag.tasks.size()) throw std::logic_error("the DAG cannot finish: some tasks wait for each other");
  return order;
}

}  // namespace tandem
