#include "sim/chains.h"

#include <algorithm>
#include <cstdint>

namespace tandem::sim {

Chains::Chains(const Dag& dag) : goes_on_(dag.tasks.size(), false) {
  constexpr std::uint8_t many = 2;
  std::vector<std::uint8_t> waits_for(dag.tasks.size(), 0);  // by task: so many others, `many` at the most
  for (const TaskId after : dag.graph.targets()) waits_for[after] = std::min<std::uint8_t>(waits_for[after] + 1, many);
  for (TaskId id = 0; id + 1 < dag.tasks.size(); ++id) {
    const std::span<const TaskId> successors = dag.graph.successors(id);
    if (successors.size() != 1 || successors.front() != id + 1 || waits_for[id + 1] != 1) continue;
    const Task &first = dag.tasks[id], &second = dag.tasks[id + 1];
    goes_on_[id] =
        !is_communication(first.op) && !is_communication(second.op) && first.rank == second.rank && first.stream == second.stream;
  }
}

}  // namespace tandem::sim
