#include "sim/unshared_links.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tandem::sim {
namespace {

using Lane = std::uint32_t;  ///< a stream of a rank

Lane lane_of(const Task& task) { return task.rank * stream_count + static_cast<Lane>(task.stream); }

}  // namespace

UnsharedLinks::UnsharedLinks(const Dag& dag, CollectiveCosts& costs) : shared_(dag.links.size(), false) {
  std::vector<std::optional<std::vector<Lane>>> in_common(dag.links.size());  // by link: of all that crosses it
  std::vector<Lane> lanes;
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    lanes.clear();
    for (const TaskId id : dag.members_of(group)) lanes.push_back(lane_of(dag.tasks[id]));
    const Task& first = dag.tasks[dag.members_of(group).front()];
    const Paths& paths = dag.communicator_of(first).layout.paths[costs.of(first).paths];
    for (const Crossing& crossing : paths.crossings) {
      if (crossing.multiplicity == 0 || shared_[crossing.link]) continue;
      std::optional<std::vector<Lane>>& common = in_common[crossing.link];
      if (!common) common = lanes;
      std::erase_if(*common, [&](Lane lane) { return std::ranges::find(lanes, lane) == lanes.end(); });
      shared_[crossing.link] = common->empty();
    }
  }
}

bool UnsharedLinks::hold(const Paths& paths) const {
  return std::ranges::none_of(paths.crossings,
                              [&](const Crossing& crossing) { return crossing.multiplicity > 0 && shared_[crossing.link]; });
}

}  // namespace tandem::sim
