// Recorded steps as graphs: folded as unfolded, with times that closed forms tell.
#include "studies/recorded/recorded_dag.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/base/input_error.h"
#include "scenarios/reading/preset_specs.h"
#include "sim/simulate.h"

namespace tandem::studies::recorded_dag_test {
namespace {

using Kind = RecordedTask::Kind;
using Way = RecordedGroup::Way;

RecordedTask recorded_kernel(Seconds time, std::vector<std::uint32_t> after = {}) {
  return {.kind = Kind::kernel, .time = time, .after = std::move(after)};
}
RecordedTask recorded_exchange(OpKind op, std::uint32_t slot, std::uint32_t call, Bytes bytes,
                               std::vector<std::uint32_t> after = {}) {
  return {.kind = Kind::exchange, .after = std::move(after), .op = op, .slot = slot, .call = call, .bytes = bytes};
}

Seconds makespan_of(const RecordedRun& run, const std::string& cluster, bool folded) {
  return sim::simulate(lay_recorded(run, cluster_preset(cluster), folded).dag).timeline.makespan();
}

/// Ranks on a torus of 2 x 2 x n: kernels between all-reduces along each of its axes.
RecordedRun torus(std::uint32_t length, Bytes bytes) {
  RecordedRun run{.name = "torus", .names = {"task"}};
  run.programs.push_back({recorded_exchange(OpKind::all_reduce, 0, 0, bytes), recorded_kernel(100e-6, {0}),
                          recorded_exchange(OpKind::all_reduce, 1, 0, bytes, {1}), recorded_kernel(50e-6, {1}),
                          recorded_exchange(OpKind::all_reduce, 2, 0, bytes, {2, 3})});
  std::map<std::vector<std::uint32_t>, std::uint32_t> groups;
  for (std::uint32_t rank = 0; rank < 4 * length; ++rank) {
    RecordedRank& one = run.ranks.emplace_back();
    for (const auto& [stride, extent] : {std::pair{1U, 2U}, {2U, 2U}, {4U, length}}) {
      const std::uint32_t first = rank - rank / stride % extent * stride;
      std::vector<std::uint32_t> members;
      for (std::uint32_t i = 0; i < extent; ++i) members.push_back(first + i * stride);
      const auto [entry, is_new] = groups.try_emplace(members, static_cast<std::uint32_t>(run.groups.size()));
      if (is_new) run.groups.push_back({"axis", Axis::none, Way::choice, members});
      one.groups.push_back(entry->second);
    }
  }
  return run;
}

/// A pipeline of `stages`: each receives, computes for 100 us, and sends on.
RecordedRun pipeline(std::uint32_t stages, Bytes bytes, std::uint32_t micro_batches) {
  RecordedRun run{.name = "pipeline", .names = {"task"}};
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    std::vector<RecordedTask> program;
    RecordedRank rank{.program = stage, .groups = {}};
    const bool receives = stage > 0, sends = stage + 1 < stages;
    if (receives) rank.groups.push_back(stage - 1);
    if (sends) rank.groups.push_back(stage);
    for (std::uint32_t i = 0; i < micro_batches; ++i) {
      std::vector<std::uint32_t> after;
      if (receives) {
        program.push_back(recorded_exchange(OpKind::receive, 0, i, bytes));
        after = {static_cast<std::uint32_t>(program.size() - 1)};
      }
      program.push_back(recorded_kernel(100e-6, after));
      const auto kernel = static_cast<std::uint32_t>(program.size() - 1);
      if (sends) program.push_back(recorded_exchange(OpKind::send, receives ? 1 : 0, i, bytes, {kernel}));
    }
    run.programs.push_back(std::move(program));
    if (sends) run.groups.push_back({"pair", Axis::pp, Way::pair, {stage, stage + 1}});
    run.ranks.push_back(rank);
  }
  return run;
}

TEST(RecordedDag, KernelsTakeWhatWasRecordedOneAfterTheOther) {
  RecordedRun run{.name = "alone", .names = {"task"}};
  run.programs.push_back({recorded_kernel(123e-6), recorded_kernel(4.567e-6), recorded_kernel(0), recorded_kernel(123e-6, {0})});
  run.ranks.push_back({});
  EXPECT_NEAR(makespan_of(run, "dgx-h100", true), (123 + 4.567 + 123) * 1e-6, 1e-15);
  // What the host does runs beside them, and takes what was recorded, too.
  run.programs.back().push_back({.kind = Kind::on_host, .time = 7e-3});
  EXPECT_NEAR(makespan_of(run, "dgx-h100", true), 7e-3, 1e-15);
}

TEST(RecordedDag, OfRanksThatAreAlikeOneIsThere) {
  RecordedRun run{.name = "alike", .names = {"task"}};
  run.programs.push_back({recorded_kernel(1e-3), recorded_exchange(OpKind::all_reduce, 0, 0, 1 << 20, {0})});
  for (int i = 0; i < 8; ++i) run.ranks.push_back({.program = 0, .groups = {0}});
  run.groups.push_back({"all", Axis::none, Way::choice, {0, 1, 2, 3, 4, 5, 6, 7}});
  const RecordedDag folded = lay_recorded(run, cluster_preset("dgx-h100"), true);
  ASSERT_EQ(folded.dag.ranks.size(), 1U);
  EXPECT_EQ(folded.dag.ranks.front().count, 8U);
  EXPECT_EQ(folded.class_of, std::vector<RankIndex>(8, 0));
  EXPECT_EQ(folded.dag.tasks.size(), 2U);
  EXPECT_EQ(lay_recorded(run, cluster_preset("dgx-h100"), false).dag.tasks.size(), run.tasks());
}

TEST(RecordedDag, FoldedIsUnfolded) {
  const std::vector<RecordedRun> runs{torus(2, 1 << 20), torus(4, 64 << 20), torus(8, 512 << 10), pipeline(4, 8 << 20, 3),
                                      pipeline(16, 1 << 20, 2)};
  for (const RecordedRun& run : runs) {
    for (const std::string cluster : {"dgx-h100", "dgx-a100"}) {
      const Seconds unfolded = makespan_of(run, cluster, false);
      EXPECT_NEAR(makespan_of(run, cluster, true), unfolded, 1e-9 * unfolded) << run.name << " on " << cluster;
      EXPECT_GT(unfolded, 150e-6);
    }
  }
}

// With transfers that take no time to speak of, a pipeline's step is (micro-batches + stages - 1) kernels.
TEST(RecordedDag, APipelineHasItsBubble) {
  const Seconds step = makespan_of(pipeline(4, 1, 8), "dgx-h100", true);
  EXPECT_GT(step, 11 * 100e-6);
  EXPECT_LT(step, 11 * 100e-6 + 11 * 20e-6);  // latencies
}

// An order that is wrong for one rank alone would have it wait for itself through others: what a rank can do first depends on
// all.
TEST(RecordedDag, NoRankWaitsInACircleThatTheTraceHasNot) {
  RecordedRun run{.name = "crossed", .names = {"task"}};
  // Rank 0's first kernel waits for rank 1, which waits for what rank 0's second kernel sends.
  run.programs.push_back({recorded_exchange(OpKind::receive, 0, 0, 8), recorded_kernel(1e-3, {0}), recorded_kernel(1e-3),
                          recorded_exchange(OpKind::send, 1, 0, 8, {2})});
  run.programs.push_back({recorded_exchange(OpKind::receive, 0, 0, 8), recorded_exchange(OpKind::send, 1, 0, 8, {0})});
  run.groups = {{"to 0", Axis::none, Way::pair, {1, 0}}, {"to 1", Axis::none, Way::pair, {0, 1}}};
  run.ranks = {{.program = 0, .groups = {0, 1}}, {.program = 1, .groups = {1, 0}}};
  EXPECT_GT(makespan_of(run, "dgx-h100", true), 2e-3);
}

TEST(RecordedDag, ACircleIsRefused) {
  RecordedRun run{.name = "circle", .names = {"first", "second"}};
  run.programs.push_back({recorded_exchange(OpKind::receive, 0, 0, 8), recorded_exchange(OpKind::send, 1, 0, 8, {0})});
  run.groups = {{"to 0", Axis::none, Way::pair, {1, 0}}, {"to 1", Axis::none, Way::pair, {0, 1}}};
  run.ranks = {{.program = 0, .groups = {0, 1}}, {.program = 0, .groups = {1, 0}}};
  EXPECT_THROW(lay_recorded(run, cluster_preset("dgx-h100"), true), InputError);
}

}  // namespace
}  // namespace tandem::studies::recorded_dag_test
