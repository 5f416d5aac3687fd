#include "scenarios/lowering/pass_notes.h"

#include <algorithm>

namespace tandem::scenarios {
namespace {

template <typename Id>
void append_numbers(std::vector<Id>& to, std::size_t first, std::size_t end) {
  for (std::size_t id = first; id < end; ++id) to.push_back(static_cast<Id>(id));
}

}  // namespace

void PassNotes::enter(const Dag& dag) {
  entered_tasks_ = dag.tasks.size();
  entered_buffers_ = dag.buffers.size();
  entered_inputs_ = dag.inputs.size();
  entered_shards_ = dag.shards.size();
}

void PassNotes::leave(const Dag& dag, const PassLabels& last) {
  append_numbers(tasks, entered_tasks_, dag.tasks.size());
  append_numbers(buffers, entered_buffers_, dag.buffers.size());
  append_numbers(inputs, entered_inputs_, dag.inputs.size());
  declares |= dag.shards.size() > entered_shards_;
  turns.push_back({tasks.size(), buffers.size()});
  labels = last;
}

std::size_t PassNotes::number_of(TaskId task) const {
  if (task >= entered_tasks_) return tasks.size() + task - entered_tasks_;
  const auto known = std::ranges::lower_bound(tasks, task);
  if (known == tasks.end() || *known != task) throw PassesDiffer("a pass waits for a task of another");
  return static_cast<std::size_t>(known - tasks.begin());
}

}  // namespace tandem::scenarios
