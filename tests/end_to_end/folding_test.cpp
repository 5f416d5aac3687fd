// A folded simulation has the times of the unfolded one, task by task.

#include <gtest/gtest.h>

#include <map>

#include "studies/step/simulated_step.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::folding_test {
namespace {

TEST(Folding, OneClassPerPipelineStage) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words("parallelism.tp=2 parallelism.pp=2 parallelism.dp=4"))), 2U);
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words("parallelism.tp=8 parallelism.pp=2 parallelism.dp=4 model.kv_heads=8 "
                                                        "training.global_batch=16 parallelism.sp=true"))),
            2U);
}

TEST(Folding, OneSlowGpuSplitsTheClasses) {
  const std::size_t classes = expect_equal_when_folded(
      tiny_cluster({"parallelism.tp=2", "parallelism.pp=2", "parallelism.dp=4", "faults={slow_gpu: {rank: 5, factor: 0.5}}"}));
  EXPECT_GT(classes, 2U);
  EXPECT_LT(classes, 16U);
}

// A shift that takes GPUs below a PCIe port to GPUs without one is no symmetry of the cluster.
TEST(Folding, GpusBelowAPortAreNotThoseWithoutOne) {
  for (const char* mesh : {"parallelism.tp=4 parallelism.dp=2", "parallelism.dp=8", "parallelism.cp=4 parallelism.dp=2"}) {
    std::vector<std::string> overrides = words(mesh);
    overrides.emplace_back("cluster.pcie={ports: [{name: pcie, GBps: 30, gpus: 0-1}]}");
    EXPECT_GE(expect_equal_when_folded(tiny_cluster(overrides)), 1U) << mesh;
  }
}

constexpr std::uint32_t parts = 16;
constexpr std::size_t clusters_per_part = 16;

std::vector<RandomCluster> clusters_of(std::uint32_t part) { return random_clusters(clusters_per_part, part + 1, parts); }

TEST(FoldingOfRandomClusters, MeetsEveryFeatureTenTimes) {
  std::map<std::string, int> times;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::vector<RandomCluster> drawn = clusters_of(part);
    EXPECT_EQ(drawn.size(), clusters_per_part);
    for (const RandomCluster& cluster : drawn) {
      for (const std::string& feature : cluster.features) ++times[feature];
    }
  }
  for (const char* feature : {"fat-tree",       "dragonfly+",     "switch",          "custom",
                              "ECMP",           "round-robin",    "shuffled",        "PCIe port",
                              "other GPUs",     "slow GPU",       "dead NIC",        "slow NIC",
                              "dead rail",      "slow rail",      "dead leaf cable", "slow leaf cable",
                              "dead pod cable", "slow pod cable", "slow NVLink",     "tp over nodes",
                              "tree",           "NVLS",           "hot expert",      "own expert axis",
                              "tp overlap",     "mesh in nodes"})
    EXPECT_GE(times[feature], 10) << feature;
}

/// In parts, for ctest to run side by side. A failure names the seed and the overrides.
class FoldingOfRandomClustersPart : public testing::TestWithParam<std::uint32_t> {};

TEST_P(FoldingOfRandomClustersPart, LeavesAllTimes) {
  for (const RandomCluster& drawn : clusters_of(GetParam()))
    EXPECT_EQ(difference_when_folded(drawn.scenario, drawn.folded), "") << drawn.text();
}

INSTANTIATE_TEST_SUITE_P(Seeds, FoldingOfRandomClustersPart, testing::Range<std::uint32_t>(0, parts));

std::vector<std::string> on_64_gpus() {
  return words(
      "parallelism.tp=4 parallelism.pp=2 parallelism.dp=8 training.global_batch=16 model.hidden=256 "
      "cluster.fabric.leaf_ports=4");
}

// Only what the slow GPU, or the node without one of its NICs, meets in another way gets classes of its own.
TEST(Folding, ClassesGrowOnlyAsNeeded) {
  const std::size_t healthy = expect_equal_when_folded(tiny_cluster(on_64_gpus()));
  EXPECT_EQ(healthy, 2U);
  for (const char* fault : {"faults.slow_gpu={rank: 13, factor: 0.5}", "faults.dead_link={nic: 13}"}) {
    std::vector<std::string> overrides = on_64_gpus();
    overrides.emplace_back(fault);
    const std::size_t classes = expect_equal_when_folded(tiny_cluster(overrides));
    EXPECT_GT(classes, healthy) << fault;
    EXPECT_LE(classes, 32U) << fault;
  }
}

// The uplinks of a leaf that are as fast as its NICs hold nobody back, so that who shares them with the slow GPU is like any
// other.
TEST(Folding, LinksThatHoldNobodyBackTellNoRanksApart) {
  std::vector<std::string> overrides = on_64_gpus();
  overrides.emplace_back("faults.slow_gpu={rank: 13, factor: 0.5}");
  const auto by_every_link = [&] { return make_world(tiny_cluster(overrides), true, {.by_every_link = true}).ranks.size(); };
  const auto looks_at_every_link = [&] { return make_world(tiny_cluster(overrides), true).options.by_every_link; };
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(overrides)), 8U);
  EXPECT_EQ(by_every_link(), 12U);
  EXPECT_FALSE(looks_at_every_link());
  overrides.emplace_back("cluster.fabric.oversubscription=[1, 2, 1]");
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(overrides)), 12U);
  EXPECT_EQ(by_every_link(), 12U);
  EXPECT_TRUE(looks_at_every_link());
}

// Over eight nodes NCCL reduces gradients of a megabyte and more in a ring, in which all ranks are alike. In its trees the roots
// would not be.
TEST(FoldingWithoutUnusedTrees, GradientsInARingTellNoRanksApart) {
  const auto scenario = [](int zero) {
    return tiny_cluster(
        {"model={layers: 24, hidden: 12288, heads: 96, kv_heads: 96, head_dim: 128, ffn: 49152, vocab: 51200, gated: false}",
         "parallelism={tp: 8, sp: true, pp: 2, dp: 8, zero: " + std::to_string(zero) + "}", "training.global_batch=8",
         "training.sequence=2048", "training.precision=bf16"});
  };
  const Scenario all_reduced = scenario(0);
  const StepResult folded = simulate_step(all_reduced, true).result, whole = simulate_step(all_reduced, false).result;
  EXPECT_EQ(folded.rank_classes, 2U);
  EXPECT_EQ(folded.rank_classes, simulate_step(scenario(1), true).result.rank_classes);
  EXPECT_GT(make_world(all_reduced, true).ranks.size(), folded.rank_classes);
  EXPECT_EQ(whole.rank_classes, 128U);
  EXPECT_NEAR(folded.step_time, whole.step_time, 1e-12 * whole.step_time);
}

TEST(FoldingWithoutUnusedTrees, LeavesTheTimesOfRandomClusters) {
  std::size_t compared = 0;
  for (const RandomCluster& drawn : random_clusters(48, 1, 1)) {
    if (drawn.scenario.parallelism.zero > 0 || !drawn.features.contains("tree")) continue;
    const StepResult folded = simulate_step(drawn.scenario, true).result, whole = simulate_step(drawn.scenario, false).result;
    EXPECT_NEAR(folded.step_time, whole.step_time, 1e-12 * whole.step_time) << drawn.text();
    EXPECT_LE(static_cast<std::size_t>(folded.rank_classes), drawn.folded.ranks.size()) << drawn.text();
    ++compared;
  }
  EXPECT_GE(compared, 5U);
}

// What the fold must notice: a tree that is used. Small gradients go up and down one.
TEST(FoldingWithoutUnusedTrees, KeepsTheTreesThatAreUsed) {
  const Scenario scenario =
      tiny_cluster(words("parallelism.dp=16 parallelism.pp=2 parallelism.zero=0 training.global_batch=16 "
                         "cluster.gpus_per_node=2 cluster.nics_per_node=2"));
  const std::size_t exact = make_world(scenario, true).ranks.size();
  EXPECT_GT(exact, 2U);
  EXPECT_EQ(static_cast<std::size_t>(simulate_step(scenario, true).result.rank_classes), exact);
}

/// Folds as if one thing that differs did not, which the comparison must notice.
std::string difference_when_blind_to(const std::string& override) {
  std::vector<std::string> overrides = on_64_gpus();
  const World blind = make_world(tiny_cluster(overrides), true);
  overrides.push_back(override);
  return difference_when_folded(tiny_cluster(overrides), blind);
}

TEST(FoldingMutations, ClassesThatDifferMustNotBeMerged) {
  for (const char* override : {"faults.slow_gpu={rank: 13, factor: 0.5}", "faults.slow_link={nic: 13, factor: 0.1}",
                               "faults.slow_link={gpu: 13, factor: 0.1}", "cluster.other_gpus=[{nodes: 3, gpu: a100-80gb}]"})
    EXPECT_NE(difference_when_blind_to(override), "") << override;
  EXPECT_EQ(difference_when_blind_to("name=alike"), "");
}

TEST(FoldingMutations, RanksMustNotTakeEachOthersClasses) {
  const Scenario scenario = tiny_cluster(on_64_gpus());
  World world = make_world(scenario, true);
  std::swap(world.class_of.front(), world.class_of.back());
  EXPECT_NE(difference_when_folded(scenario, world), "");
}

}  // namespace
}  // namespace tandem::studies::folding_test
