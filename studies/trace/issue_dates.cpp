#include "studies/trace/issue_dates.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "sim/host_issue.h"

namespace tandem::studies {

std::function<Issued(TaskId)> issue_dates(const Dag& dag, const Timeline& timeline) {
  if (issues_for_free(dag)) return {};
  const auto host = std::make_shared<HostIssue>(dag);
  std::vector<TaskId> by_end(dag.tasks.size());
  std::iota(by_end.begin(), by_end.end(), 0);
  std::ranges::stable_sort(by_end, {}, [&](TaskId id) { return timeline.end[id]; });
  for (const TaskId id : by_end)
    if (dag.unit_of(id).front() == id) host->ended(id, timeline.end[id]);
  return [&dag, host](TaskId id) {
    const Seconds end = host->issued(id);
    return Issued{end - first_issue_time(dag, id), end};
  };
}

}  // namespace tandem::studies
