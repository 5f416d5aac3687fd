// What the analyses say of whole steps, simulated and executed, folded and not: parts add up to the whole, and closed forms.

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/analysis/critical_path.h"
#include "runtime/analysis/memory_over_time.h"
#include "studies/step/executed_step.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::analysis_test {
namespace {

Seconds sum_of(const std::vector<PathKind>& kinds, const std::string& end) {
  Seconds sum = 0;
  for (const PathKind& kind : kinds) sum += kind.name.ends_with(end) ? kind.time : 0;
  return sum;
}

/// Returns the critical path, summed by kind.
std::vector<PathKind> expect_sound_path(const Dag& dag, const Timeline& timeline) {
  const std::vector<PathSegment> path = critical_path(dag, timeline);
  Seconds reached = 0;
  for (const PathSegment& segment : path) {
    EXPECT_EQ(segment.start, reached);
    reached = segment.end;
  }
  EXPECT_EQ(reached, timeline.makespan());
  std::vector<PathKind> kinds = sum_by_kind(dag, path);
  EXPECT_NEAR(sum_of(kinds, ""), timeline.makespan(), 1e-9 * timeline.makespan());
  return kinds;
}

void expect_sound_memory(const Dag& dag, const Timeline& timeline) {
  std::vector<RankIndex> ranks(dag.ranks.size());
  std::iota(ranks.begin(), ranks.end(), RankIndex{0});
  const std::vector<MemoryUse> uses = memory_use(dag, timeline);
  for (const std::size_t points : {10UL, 1'000'000UL}) {
    const std::vector<MemoryOverTime> memories = memory_over_time(dag, timeline, ranks, {.points = points, .holders = 1000});
    ASSERT_EQ(memories.size(), ranks.size());
    for (const RankIndex rank : ranks) {
      const MemoryOverTime& memory = memories[rank];
      const MemoryUse& use = uses[rank];
      const Bytes peak = use.activations + use.buffers;
      EXPECT_LE(memory.points.size(), points);
      EXPECT_EQ(std::ranges::max(memory.points, {}, &MemoryPoint::bytes).bytes(), peak);
      Bytes held = 0;
      for (const MemoryHolder& holder : memory.largest) held += holder.bytes;
      EXPECT_EQ(held, peak);
      ASSERT_NE(memory.peak_task, no_id);
      EXPECT_EQ(dag.tasks[memory.peak_task].rank, rank);
      EXPECT_EQ(timeline.start[memory.peak_task], use.peak_at);
    }
  }
}

std::vector<PathKind> expect_sound(const Dag& dag, const Timeline& timeline) {
  expect_sound_memory(dag, timeline);
  return expect_sound_path(dag, timeline);
}

const char* const mesh = "parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 training.global_batch=8";

TEST(Analysis, OfASimulatedStepFoldedAndNot) {
  for (const bool folded : {true, false}) {
    const SimulatedStep step = simulate_step(tiny_cluster(words(mesh)), folded);
    const std::vector<PathKind> kinds = expect_sound(step.dag, step.timeline);
    EXPECT_LT(sum_of(kinds, "wait"), 1e-9 * step.timeline.makespan());  // what is simulated starts when it can
    EXPECT_GT(sum_of(kinds, "(tp)"), 0);
    EXPECT_GT(sum_of(kinds, "(pp)"), 0);
  }
}

TEST(Analysis, OfAnExecutedStep) {
  ExecutedStep step(tiny_model(words(mesh)), "tiny");
  step.execute();
  expect_sound(step.dag(), step.timeline());
}

TEST(Analysis, OfOneRankIsKernelsAndWaitsAlone) {
  ExecutedStep executed(tiny_model({}), "tiny");
  executed.execute();
  const SimulatedStep simulated = simulate_step(tiny_model({}), true);
  EXPECT_EQ(simulated.dag.ranks.size(), 1U);
  EXPECT_EQ(sum_of(expect_sound(executed.dag(), executed.timeline()), ")"), 0);
  const std::vector<PathKind> kinds = expect_sound(simulated.dag, simulated.timeline);
  EXPECT_EQ(sum_of(kinds, ")"), 0);
  // One stream: all that runs is on the path.
  EXPECT_NEAR(sum_of(kinds, "optimizer"), simulated.result.parts.optimizer(), 1e-9 * simulated.result.step_time);
}

/// A 1F1B step takes as long as m + p - 1 forwards and as many backwards (Narayanan et al. 2021, section 2.2), m being the
/// micro-batches and p the stages. The chain has p - 1 forwards up the pipeline, m on the last stage, and the same back.
TEST(Analysis, ThePathThroughAPipelineHasItsClosedForm) {
  for (const auto& [p, m] : {std::pair(16, 64), std::pair(4, 8), std::pair(8, 8)}) {
    const SimulatedStep step = simulate_step(pure_pipeline(p, m, "1f1b"), true);
    const std::vector<PathKind> kinds = expect_sound_path(step.dag, step.timeline);
    const double passes = (m + p - 1.0) / m;
    const TimeParts& mean = step.result.parts;
    for (const Phase phase : {Phase::forward, Phase::backward_input, Phase::backward_weight}) {
      const Seconds expected = passes * mean.in_phase(phase);
      EXPECT_NEAR(sum_of(kinds, " " + std::string(name_of(phase))), expected, 0.02 * expected) << "p " << p << ", m " << m;
    }
  }
}

}  // namespace
}  // namespace tandem::studies::analysis_test
