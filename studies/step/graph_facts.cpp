#include "studies/step/graph_facts.h"

#include "runtime/analysis/awaited.h"
#include "sim/bounds.h"

namespace tandem::studies {
namespace {

KernelWork kernel_work(const Dag& dag, const Timeline& timeline) {
  KernelWork work;
  std::vector<OpCost> costs;  // by kernel
  for (const TaskId first : dag.first_of_kernel) costs.push_back(cost_of(dag, first));
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (is_communication(task.op)) continue;
    const OpCost& cost = costs[dag.tasks[id].kernel];
    const double ranks = dag.ranks[task.rank].count * timeline.times(id);
    work.memory_traffic += static_cast<double>(cost.bytes) * ranks;
    if (operation(task.op).op_class != OpClass::memory) work.flops += cost.flops * ranks;
  }
  return work;
}

}  // namespace

GraphFacts::GraphFacts(const Dag& dag, const Timeline& timeline)
    : alone(dag),
      lower_bound(sim::lower_bound(dag, alone, timeline)),
      replay(dag),
      work(kernel_work(dag, timeline)),
      sent(sent_by_axis(dag, timeline)),
      layers(traffic_by_layer(dag, timeline)),
      awaited(awaited_by(dag)),
      memory(dag) {}

}  // namespace tandem::studies
