#include "tests/end_to_end/mutations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "runtime/host/compare.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/serial_backend.h"
#include "tests/runtime/edges.h"

namespace tandem::studies {

Dag lowered(const Scenario& scenario) { return lower(scenario, make_world(scenario, false)); }

UnshardedStep::UnshardedStep(const Scenario& scenario) : dag_(lowered(unsharded(scenario))), memory_(dag_, data_seed) {
  SerialBackend backend(memory_, 0);
  execute(dag_, backend);
}

double UnshardedStep::difference(const Dag& dag, unsigned seed, std::set<GroupId> dropped) const {
  HostMemory memory(dag, data_seed);
  SerialBackend backend(memory, seed, std::move(dropped));
  execute(dag, backend);
  return compare(memory, memory_).largest();
}

Dag without_edges(Dag dag, std::string_view from, std::string_view to) {
  std::vector<TaskGraph::Edge> edges;
  std::size_t dropped = 0;
  for (const auto& [source, target] : edges_of(dag)) {
    const bool drop = dag.name_of_task(source) == from && dag.name_of_task(target) == to &&
                      dag.tasks[source].stream != dag.tasks[target].stream;
    if (drop) {
      ++dropped;
    } else {
      edges.emplace_back(source, target);
    }
  }
  EXPECT_GT(dropped, 0U) << from << " -> " << to;
  dag.graph = TaskGraph(dag.tasks.size(), edges);
  return dag;
}

Dag with_shifted_shards(Dag dag, const std::string& tensor) {
  for (ParameterShard& shard : dag.shards) {
    if (shard.tensor != tensor) continue;
    shard.row = (shard.row + shard.rows) % shard.tensor_rows;
    shard.column = (shard.column + shard.columns) % shard.tensor_columns;
  }
  return dag;
}

Dag with_swapped_members(Dag dag, GroupId a, GroupId b) {
  TaskId& of_a = dag.group_tasks[dag.group_begin[a + 1] - 1];
  TaskId& of_b = dag.group_tasks[dag.group_begin[b + 1] - 1];
  const auto exchange = [&](GroupId group, TaskId leaves, TaskId comes) {
    Communicator mixed = dag.communicators[dag.groups[group].communicator];
    const std::uint32_t left = dag.ranks[dag.tasks[leaves].rank].world_rank;
    std::ranges::replace(mixed.members, left, dag.ranks[dag.tasks[comes].rank].world_rank);
    dag.groups[group].communicator = static_cast<CommunicatorId>(dag.communicators.size());
    dag.communicators.push_back(std::move(mixed));
  };
  exchange(a, of_a, of_b);
  exchange(b, of_b, of_a);
  std::swap(of_a, of_b);
  Task one = dag.tasks[of_a], other = dag.tasks[of_b];
  std::swap(one.group, other.group);
  dag.tasks.set(of_a, one);
  dag.tasks.set(of_b, other);
  return dag;
}

}  // namespace tandem::studies
