#include "sim/chains.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "sim/simulate.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::chains_test {
namespace {

TEST(Chains, AreKernelsThatNothingEntersAndNothingLeaves) {
  SmallDag small;
  const RankIndex rank = small.rank();
  std::vector<TaskId> kernels;
  for (int i = 0; i < 8; ++i) kernels.push_back(small.kernel(rank, 10));
  const CommunicatorId alone = small.communicator(1, {});
  const TaskId reduced = small.all_reduce(rank, alone, 100);
  const TaskId beside = small.kernel(rank, 10, Stream::host);
  small.depend(kernels[2], reduced);
  small.depend(beside, kernels[5]);
  const Dag dag = small.finish();
  const Chains chains(dag);
  for (const std::size_t i : {0, 1, 3, 5, 6}) EXPECT_TRUE(chains.goes_on(kernels[i])) << i;
  EXPECT_FALSE(chains.goes_on(kernels[2]));  // the collective waits for it, too
  EXPECT_FALSE(chains.goes_on(kernels[4]));  // the next one waits for the host, too
  EXPECT_FALSE(chains.goes_on(kernels[7]));
  EXPECT_FALSE(chains.goes_on(reduced));
  EXPECT_FALSE(chains.goes_on(beside));  // its only successor is on another stream
  EXPECT_EQ(chains.last(kernels[0]), kernels[2]);
  EXPECT_EQ(chains.last(kernels[6]), kernels[7]);
  EXPECT_EQ(chains.last(reduced), reduced);
}

std::size_t links(const Dag& dag) {
  const Chains chains(dag);
  std::size_t count = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) count += chains.goes_on(id) ? 1 : 0;
  return count;
}

/// The same step where each task of a stream waits for the one before the last, too. That has ended when the last one begins.
Dag without_chains(Dag dag) {
  std::vector<TaskGraph::Edge> edges;
  std::vector<std::vector<TaskId>> streams(dag.ranks.size() * stream_count);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const TaskId next : dag.graph.successors(id)) edges.emplace_back(id, next);
    const Task& task = dag.tasks[id];
    std::vector<TaskId>& stream = streams[task.rank * stream_count + static_cast<std::size_t>(task.stream)];
    if (stream.size() > 1) edges.emplace_back(stream[stream.size() - 2], id);
    stream.push_back(id);
  }
  dag.graph = TaskGraph(dag.tasks.size(), edges);
  return dag;
}

enum class Cpu {
  issues_for_free,
  paces,           ///< kernels that are short
  waits_sometimes  ///< for a collective before it issues more
};

/// Kernels and a few collectives, which slow them: a kernel of 0.1 ms and less is issued in 0.02 ms.
Dag random_step(std::uint32_t seed, Cpu cpu) {
  constexpr Seconds us = 1e-6;
  Dag dag = RandomDag(seed).build(300);
  for (Device& device : dag.devices) {
    device.architecture = Architecture::ampere;
    device.multiprocessors = 108;
  }
  if (cpu != Cpu::issues_for_free) dag.software.issue = {.forward = 20 * us, .backward = 20 * us, .communication = 20 * us};
  if (cpu == Cpu::waits_sometimes) dag.software.waits_for = {OpKind::all_reduce, OpKind::receive};
  return dag;
}

// Dates of kernels in a chain are sums in the same order; when a collective begins in the middle of one they may differ by
// rounding.
TEST(Chains, ChangeNoDates) {
  std::size_t in_chains = 0;
  for (const Cpu cpu : {Cpu::issues_for_free, Cpu::paces, Cpu::waits_sometimes}) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      const Dag dag = random_step(seed, cpu), apart = without_chains(dag);
      in_chains += links(dag) - links(apart);
      const Timeline played = simulate(dag).timeline, single = simulate(apart).timeline;
      const Seconds rounding = 1e-12 * single.makespan();
      for (TaskId id = 0; id < dag.tasks.size(); ++id) {
        ASSERT_NEAR(played.start[id], single.start[id], rounding) << "seed " << seed << " task " << id;
        ASSERT_NEAR(played.end[id], single.end[id], rounding) << "seed " << seed << " task " << id;
      }
    }
  }
  EXPECT_GT(in_chains, 1000U);
}

}  // namespace
}  // namespace tandem::sim::chains_test
