// Ranks that are copied from others of their program are what they would be if they were lowered.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/random_steps.h"
#include "tests/end_to_end/same_dag.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::copied_ranks_test {
namespace {

/// The first task that is another one.
std::string difference_of_tasks(const Dag& copied, const Dag& lowered) {
  if (copied.tasks.size() != lowered.tasks.size()) return "the number of tasks";
  for (TaskId id = 0; id < lowered.tasks.size(); ++id) {
    Task a = copied.tasks[id], b = lowered.tasks[id];
    const std::string who = std::to_string(id) + ", " + std::string(lowered.name_of_task(id));
    if (copied.name_of_task(id) != lowered.name_of_task(id)) return who + ": name";
    a.attributes = b.attributes;
    a.name = b.name;
    a.kernel = b.kernel;  // what it costs is compared below
    if (a != b) return who;
    const auto &x = copied.operands_of(id), &y = lowered.operands_of(id);
    for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i)
      if (x[i].buffer != y[i].buffer || x[i].access() != y[i].access()) return who + ": operands";
    if (is_communication(b.op)) continue;
    const OpCost one = cost_of(copied, id), other = cost_of(lowered, id);
    if (one.flops != other.flops || one.bytes != other.bytes) return who + ": cost";
  }
  return "";
}

std::string difference_of_buffers(const Dag& copied, const Dag& lowered) {
  if (copied.buffers.size() != lowered.buffers.size()) return "the number of buffers";
  for (BufferId id = 0; id < lowered.buffers.size(); ++id) {
    Buffer a = copied.buffers[id], b = lowered.buffers[id];
    a.offset = b.offset;  // of slices, another rank's is elsewhere
    if (a != b) return "buffer " + std::to_string(id);
  }
  return same(copied.shards, lowered.shards) ? "" : "what parameters hold";
}

/// By rank.
std::vector<std::pair<Bytes, Bytes>> peaks_of(const Dag& dag, const Timeline& timeline) {
  std::vector<std::pair<Bytes, Bytes>> peaks;
  for (const MemoryUse& use : memory_use(dag, timeline)) peaks.emplace_back(use.peak(), use.activations);
  return peaks;
}

/// Returns of how many inputs copies do not tell what they hold: none where none was copied.
std::size_t compare(const Scenario& scenario, const World& world, const std::string& what) {
  const Dag lowered = lower(scenario, world), copied = lower(scenario, world, {.copies_ranks = true});
  EXPECT_EQ(difference_of_tasks(copied, lowered), "") << what;
  EXPECT_EQ(difference_of_buffers(copied, lowered), "") << what;
  EXPECT_TRUE(copied.groups == lowered.groups) << what;
  EXPECT_EQ(copied.group_begin, lowered.group_begin) << what;
  EXPECT_EQ(copied.group_tasks, lowered.group_tasks) << what;
  const Timeline some = sim::simulate(copied).timeline, all_dates = sim::simulate(lowered).timeline;
  EXPECT_TRUE(some.start == all_dates.start && some.end == all_dates.end) << what;
  EXPECT_TRUE(peaks_of(copied, some) == peaks_of(lowered, all_dates)) << what;
  return lowered.inputs.size() - copied.inputs.size();
}

TEST(CopiedRanks, AreThoseThatWouldBeLowered) {
  for (const std::string plan :
       {"parallelism.dp=4 parallelism.pp=2", "parallelism.tp=2 parallelism.dp=2 parallelism.zero=1",
        "parallelism.dp=4 parallelism.zero=2", "parallelism.cp=4 parallelism.cp_method=all-gather",
        "parallelism.pp=4 model.layers=8 training.schedule=dualpipe parallelism.dp=2 training.global_batch=32"}) {
    const Scenario scenario = tiny_cluster(words(plan));
    EXPECT_GT(compare(scenario, make_world(scenario, false), plan), 0U) << plan;
  }
}

TEST(CopiedRanks, AreThoseThatWouldBeLoweredOfRandomSteps) {
  std::size_t copied = 0;
  for (const RandomStep& step : valid_steps(40).steps) {
    const Scenario scenario = tiny_cluster(step.overrides);
    copied += compare(scenario, make_world(scenario, false), step.text()) > 0 ? 1 : 0;
  }
  EXPECT_GE(copied, 15U);
}

TEST(CopiedRanks, AreThoseThatWouldBeLoweredOnRandomClusters) {
  std::size_t of_classes = 0;
  for (const RandomCluster& cluster : random_clusters(24, 5, 1)) {
    of_classes += compare(cluster.scenario, cluster.folded, cluster.text()) > 0 ? 1 : 0;
    compare(cluster.scenario, make_world(cluster.scenario, false), cluster.text());
  }
  EXPECT_GE(of_classes, 8U);
}

}  // namespace
}  // namespace tandem::studies::copied_ranks_test
