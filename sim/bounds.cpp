#include "sim/bounds.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "sim/collective_cost.h"
#include "sim/host_issue.h"
#include "sim/serial_replay.h"

namespace tandem::sim {

Seconds lower_bound(const Dag& dag, const KernelTimes& times, const Timeline& timeline) {
  std::vector<Seconds> compute(dag.ranks.size(), 0), on_host = compute;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (!is_communication(task.op))
      (task.stream == Stream::host ? on_host : compute)[task.rank] += timeline.times(id) * times.lower_bound_of(id);
  }
  Seconds longest = 0;  // of the transfers that their protocol holds back
  std::vector<double> link_bytes(dag.links.size(), 0);
  CollectiveCosts costs(dag);
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const Group& group = dag.groups[g];
    const Communicator& communicator = dag.communicators[group.communicator];
    const TaskId first_id = dag.members_of(g).front();
    const Task& first = dag.tasks[first_id];
    const CollectiveCost& cost = costs.of(first);
    if (cost.rate_limit > 0) longest = std::max(longest, static_cast<double>(cost.bytes_per_channel) / cost.rate_limit);
    for (const Crossing& crossing : communicator.layout.paths[cost.paths].crossings) {
      link_bytes[crossing.link] += timeline.times(first_id) * static_cast<double>(cost.bytes_per_channel) * crossing.multiplicity;
    }
  }
  Seconds bound = compute.empty() ? longest : std::max(longest, *std::max_element(compute.begin(), compute.end()));
  for (const Seconds computing : on_host) bound = std::max(bound, computing);
  for (const Seconds issuing : issue_times(dag, timeline)) bound = std::max(bound, issuing);
  for (LinkId link = 0; link < dag.links.size(); ++link) bound = std::max(bound, link_bytes[link] / dag.links[link].capacity);
  return bound;
}

Seconds upper_bound(const Dag& dag, SerialReplay replay, const Timeline& timeline, const KernelTimes* alone) {
  const std::optional<Seconds> last_end = replay.last_end(timeline, alone);
  if (!last_end) return std::numeric_limits<Seconds>::infinity();
  return std::max(timeline.makespan(), before_first_kernel(dag) + *last_end);
}

}  // namespace tandem::sim
