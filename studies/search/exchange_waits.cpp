#include "studies/search/exchange_waits.h"

#include <algorithm>
#include <ranges>

#include "studies/search/least_loss.h"

namespace tandem::studies {
namespace {

/// The kernels of a rank, which run in the order of their numbers, and what a task stands between.
class KernelsOfRank {
 public:
  KernelsOfRank(const Dag& dag, const IdlePaths& paths, RankIndex rank) : dag_(dag), place_(dag.tasks.size(), no_place) {
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.tasks[id].rank != rank || dag.tasks[id].stream != Stream::compute) continue;
      place_[id] = static_cast<std::ptrdiff_t>(kernels_.size());
      kernels_.push_back(id);
    }
    before_.assign(dag.tasks.size(), no_place);
    after_.assign(dag.tasks.size(), static_cast<std::ptrdiff_t>(kernels_.size()));
    for (const TaskId first : paths.order())
      for (const TaskId member : dag.unit_of(first)) {
        const std::ptrdiff_t last = std::max(place_[member], before_[member]);
        for (const TaskId next : dag.graph.successors(member)) before_[next] = std::max(before_[next], last);
      }
    for (const TaskId first : paths.order() | std::views::reverse)
      for (const TaskId member : dag.unit_of(first))
        for (const TaskId next : dag.graph.successors(member))
          after_[member] = std::min(after_[member], is_kernel(next) ? place_[next] : after_[next]);
  }

  bool is_kernel(TaskId id) const { return place_[id] != no_place; }
  TaskId at(std::ptrdiff_t place) const { return kernels_[static_cast<std::size_t>(place)]; }
  /// The place of the last kernel that the task waits for; -1: none.
  std::ptrdiff_t before(TaskId id) const { return before_[id]; }
  /// The place of the first that waits for it.
  std::ptrdiff_t after(TaskId id) const { return after_[id]; }
  bool is_between(TaskId id) const {
    return before_[id] != no_place && after_[id] < static_cast<std::ptrdiff_t>(kernels_.size());
  }

 private:
  static constexpr std::ptrdiff_t no_place = -1;
  const Dag& dag_;
  std::vector<TaskId> kernels_;
  std::vector<std::ptrdiff_t> place_, before_, after_;
};

}  // namespace

std::vector<KernelsApart> kernels_apart(const Dag& dag, const IdlePaths& paths, RankIndex rank) {
  const KernelsOfRank kernels(dag, paths, rank);
  // How long a kernel waits, once the one before it has ended, for what itself waits for that one.
  std::vector<Seconds> wait(dag.tasks.size(), 0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank != rank || kernels.is_kernel(id) || !kernels.is_between(id)) continue;
    if (kernels.before(id) + 1 != kernels.after(id)) continue;
    Seconds& longest = wait[kernels.at(kernels.after(id))];
    longest = std::max(longest, paths.duration(id));
  }
  std::vector<KernelsApart> all;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank != rank || task.stream != Stream::ep || !kernels.is_between(id) || paths.least_taken(id) == 0) continue;
    const std::ptrdiff_t earlier = kernels.before(id), later = kernels.after(id);
    std::vector<SlowedKernel> between;
    Seconds alone = 0, waits = 0;
    for (std::ptrdiff_t place = earlier + 1; place <= later; ++place) {
      waits += wait[kernels.at(place)];
      if (place == later) break;
      alone += paths.duration(kernels.at(place));
      between.push_back({paths.duration(kernels.at(place)), paths.loss(kernels.at(place), paths.least_taken(id))});
    }
    const Seconds loss = least_loss(std::move(between), waits, paths.duration(id));
    all.push_back({kernels.at(earlier), kernels.at(later), alone + waits + loss});
  }
  return all;
}

}  // namespace tandem::studies
