#include "runtime/analysis/memory_origins.h"

#include <algorithm>

namespace tandem {
namespace {

std::vector<std::optional<double>> held_beside(const Dag& dag) {
  std::vector<std::optional<double>> held;
  for (const TaskId first : dag.first_of_kernel) {
    const Task& task = dag.tasks[first];
    held.push_back(is_fused(dag.attributes[task.attributes])
                       ? std::nullopt
                       : std::optional(dag.software.beside(task.op, pass_of(task.phase)).holds));
  }
  return held;
}

}  // namespace

MemoryOrigins::MemoryOrigins(const Dag& dag)
    : tasks(ByRank::tasks(dag)),
      buffers(ByRank::buffers(dag)),
      captured(captured_tasks(dag)),
      held_by_kernel(held_beside(dag)),
      anything_is_held(std::ranges::any_of(held_by_kernel, [](const auto& held) { return held.value_or(0) > 0; })),
      placeholders(lasting_placeholders(dag)),
      framework(framework_memory(dag, placeholders)),
      updates(optimizer_updates(dag)) {}

}  // namespace tandem
