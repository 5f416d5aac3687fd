#include "tests/end_to_end/volumes.h"

namespace tandem::studies {

std::map<std::string, Volume> volumes_of(const Dag& dag, RankIndex rank) {
  std::map<std::string, Volume> volumes;
  for (const Task& task : dag.tasks) {
    if (task.rank != rank || task.group == no_id) continue;
    Volume& volume = volumes[std::string(operation(task.op).name) + " " + std::string(name_of(task.axis)) + " " +
                             std::string(name_of(task.phase))];
    ++volume.count;
    volume.bytes += dag.groups[task.group].bytes;
  }
  return volumes;
}

}  // namespace tandem::studies
