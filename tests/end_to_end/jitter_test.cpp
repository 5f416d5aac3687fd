// With jitter, a folded step takes as long as the unfolded one: the members that it does not hold arrive by order statistics.

#include "sim/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::jitter_test {
namespace {

struct Drawn {
  Seconds undisturbed = 0, mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

Drawn draw(const Scenario& scenario, bool folded, const Variation& variation, std::size_t draws, std::uint64_t seed) {
  const Dag dag = lower(scenario, make_world(scenario, folded));
  const std::vector<Seconds> times = drawn_makespans(dag, variation, {.seed = seed, .count = draws, .jobs = 2});
  return {simulate(dag).timeline.makespan(), std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(draws),
          percentile(times, 0.5), percentile(times, 0.9), percentile(times, 0.99)};
}

/// On 64 GPUs, with kernels that last microseconds to milliseconds.
Scenario on_64_gpus(const std::string& mesh) {
  std::vector<std::string> overrides{
      "model={layers: 4, hidden: 2048, heads: 16, head_dim: 128, kv_heads: 16, ffn: 8192, vocab: 4096}",
      "training={sequence: 2048, micro_batch: 1, global_batch: 64, precision: bf16, schedule: 1f1b}", "cluster.gpus=64"};
  for (std::size_t begin = 0; begin < mesh.size();) {
    const std::size_t end = std::min(mesh.find("; ", begin), mesh.size());
    overrides.push_back(mesh.substr(begin, end - begin));
    begin = end + 2;
  }
  return tiny_cluster(overrides);
}

/// What the folded excess can be off by, as a share. Of deep pipelines most is missing where gradients are reduced beside the
/// backward: that slows the last of the members, and the one that is simulated is seldom the last (see arrivals.h).
constexpr double alone = 0.25, beside_others = 0.55;

struct Case {
  const char* name;
  const char* mesh;
  Variation variation;
  double off_by = alone;
};

class JitterOfFolded : public testing::TestWithParam<Case> {};

TEST_P(JitterOfFolded, IsThatOf64Ranks) {
  constexpr std::size_t draws = 120;
  const Scenario scenario = on_64_gpus(GetParam().mesh);
  const Drawn all = draw(scenario, false, GetParam().variation, draws, 1);
  const Drawn folded = draw(scenario, true, GetParam().variation, draws, 2);
  EXPECT_NEAR(folded.undisturbed, all.undisturbed, 1e-9 * all.undisturbed);
  EXPECT_NEAR(folded.p50, all.p50, 0.02 * all.p50);
  EXPECT_NEAR(folded.p99, all.p99, 0.05 * all.p99);
  // The excess over the undisturbed step is what folding could get wrong.
  const auto excess = [](const Drawn& drawn, Seconds time) { return time / drawn.undisturbed - 1; };
  EXPECT_NEAR(excess(folded, folded.mean), excess(all, all.mean), GetParam().off_by * excess(all, all.mean));
  std::printf(
      "%-22s undisturbed %.6f s; excess of mean, p50, p90, p99: %6.3f %6.3f %6.3f %6.3f %% of 64 ranks, "
      "%6.3f %6.3f %6.3f %6.3f %% folded\n",
      GetParam().name, all.undisturbed, 100 * excess(all, all.mean), 100 * excess(all, all.p50), 100 * excess(all, all.p90),
      100 * excess(all, all.p99), 100 * excess(folded, folded.mean), 100 * excess(folded, folded.p50),
      100 * excess(folded, folded.p90), 100 * excess(folded, folded.p99));
}

constexpr Variation all_kinds{.kernel = 0.05, .rank = 0.02, .communication = 0.05};
const Case cases[] = {
    {"DataParallel", "parallelism={dp: 64}", all_kinds},
    {"KernelsAlone", "parallelism={dp: 64}", {.kernel = 0.1}},
    {"SlicedWeights", "parallelism={dp: 64, zero: 3}", all_kinds},
    {"TensorParallel", "model.layers=2; parallelism={tp: 8, dp: 8, sp: true}", all_kinds},
    {"TensorParallelKernels", "model.layers=2; parallelism={tp: 8, dp: 8, sp: true}", {.kernel = 0.1}},
    {"TensorParallelRanks", "model.layers=2; parallelism={tp: 8, dp: 8, sp: true}", {.rank = 0.02}},
    {"Communication", "model.layers=2; parallelism={tp: 8, dp: 8, sp: true}", {.communication = 0.2}},
    {"Pipelines", "parallelism={pp: 4, dp: 16}", all_kinds},
    {"DeepPipelines", "model.layers=16; parallelism={pp: 16, dp: 4}; training.overlap.dp=false", all_kinds},
    {"DeepPipelinesOverlapped", "model.layers=16; parallelism={pp: 16, dp: 4}", all_kinds, beside_others},
    {"PipelinesOfSlowRanks", "parallelism={pp: 4, dp: 16}", {.rank = 0.02}},
    {"TensorAndPipelines", "parallelism={tp: 4, pp: 4, dp: 4, sp: true}", all_kinds},
    {"Context", "model.layers=2; parallelism={cp: 4, tp: 2, dp: 8}", all_kinds},
    {"Experts", "model.moe={experts: 8, top_k: 2, ffn: 2048}; parallelism={ep: 8, dp: 64}", all_kinds},
};
INSTANTIATE_TEST_SUITE_P(Meshes, JitterOfFolded, testing::ValuesIn(cases), [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tandem::studies::jitter_test
