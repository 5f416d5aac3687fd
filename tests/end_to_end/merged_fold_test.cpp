// Folding that merges what ECMP tells apart by chance: what it says it can be off by holds.

#include <gtest/gtest.h>

#include <set>

#include "scenarios/mesh/cable_shares.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::merged_fold_test {
namespace {

/// 32 or 64 ranks on nodes of four, leaves of two nodes, with few and slow cables: collisions cost a good part of the step.
Scenario hashed(std::uint64_t seed, const std::string& mesh) {
  Scenario scenario = tiny_cluster(
      words(mesh + " training.global_batch=32 model.hidden=256 model.layers=8 training.overlap.dp=false cluster.gpus_per_node=4 "
                   "cluster.nics_per_node=4 cluster.nic_gbps=8 cluster.fabric.leaf_ports=8 cluster.fabric.pod_leaves=2 "
                   "cluster.fabric.rail_optimized=false"));
  scenario.cluster.fabric.routing = FlowRouting::ecmp;
  scenario.cluster.fabric.ecmp_seed = seed;
  return scenario;
}

const std::vector<std::string> meshes{"parallelism.tp=2 parallelism.pp=2 parallelism.dp=8",
                                      "parallelism.tp=4 parallelism.pp=4 parallelism.dp=4",
                                      "parallelism.tp=1 parallelism.pp=4 parallelism.dp=8 parallelism.zero=0",
                                      "parallelism.tp=2 parallelism.cp=2 parallelism.dp=16"};

TEST(MergedFold, TheExactStepTimeLiesWithinWhatItStates) {
  std::set<bool> collisions_matter;
  for (const std::string& mesh : meshes) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Scenario scenario = hashed(seed, mesh);
      const Seconds exact = simulate_step(scenario, true).result.step_time;
      for (const double tolerance : {0.01, 100.0}) {
        const StepResult merged = simulate_step(scenario, true, {.fold_tolerance = tolerance}).result;
        ASSERT_TRUE(merged.merged_fold);
        EXPECT_EQ(merged.merged_fold->tolerance, tolerance);
        const double rounding = 1e-9 * exact;
        EXPECT_LE(merged.merged_fold->lower, exact + rounding) << mesh << ", seed " << seed;
        EXPECT_GE(merged.merged_fold->upper, exact - rounding) << mesh << ", seed " << seed;
        EXPECT_GE(merged.step_time, merged.merged_fold->lower - rounding);
        EXPECT_LE(merged.step_time, merged.merged_fold->upper + rounding);
        collisions_matter.insert(merged.merged_fold->upper > 1.02 * merged.merged_fold->lower);
      }
    }
  }
  EXPECT_TRUE(collisions_matter.contains(true));
}

TEST(MergedFold, ALargeToleranceLeavesTheClassesOfIdealSpreading) {
  Scenario scenario = hashed(1, meshes.front());
  const std::size_t exact = make_world(scenario, true).ranks.size();
  const std::size_t merged = make_world(scenario, true, {.merge = {.tolerance = 1e6}}).ranks.size();
  scenario.cluster.fabric.routing = FlowRouting::adaptive;
  EXPECT_EQ(merged, make_world(scenario, true).ranks.size());
  EXPECT_GT(exact, merged);
}

TEST(MergedFold, NothingIsMergedUnderIdealSpreading) {
  Scenario scenario = hashed(1, meshes.front());
  scenario.cluster.fabric.routing = FlowRouting::adaptive;
  const StepResult merged = simulate_step(scenario, true, {.fold_tolerance = 1}).result;
  EXPECT_FALSE(merged.merged_fold);
  EXPECT_EQ(merged.step_time, simulate_step(scenario, true).result.step_time);
}

// Two transfers of one kind on one cable get half each; with a third of another kind on it, a third where all count.
TEST(CableShares, AreWhatTheWorstCableLeaves) {
  const Scenario scenario = hashed(3, "parallelism.tp=1 parallelism.pp=2 parallelism.dp=16");
  const Mesh mesh(scenario.parallelism);
  const Cluster cluster(scenario.cluster);
  const CommunicatorSurvey survey = survey_communicators(scenario, mesh, cluster, Symmetry(mesh, cluster));
  for (const auto among : {CableMerge::Among::same_kind, CableMerge::Among::all}) {
    const auto shares = cable_shares(survey, cluster, among);
    for (std::size_t i = 0; i < survey.instances.size(); ++i) {
      const CommunicatorInstance& one = survey.instances[i];
      if (one.slot != Slot::send_forward) continue;
      double worst = std::numeric_limits<double>::infinity();
      for (const Crossing& crossing : one.layout.paths.front().crossings) {
        const Link link = cluster.link(crossing.link);
        if (link.tier != Tier::leaf && link.tier != Tier::spine) continue;
        double on_it = 0;
        for (const CommunicatorInstance& other : survey.instances) {
          if (among == CableMerge::Among::same_kind && other.slot != one.slot) continue;
          std::uint32_t most = 0;
          for (const Paths& paths : other.layout.paths) {
            for (const Crossing& c : paths.crossings) most = std::max(most, c.link == crossing.link ? c.multiplicity : 0U);
          }
          on_it += most;
        }
        worst = std::min(worst, link.capacity / on_it);
      }
      EXPECT_EQ(shares[i].front(), worst);
    }
  }
}

}  // namespace
}  // namespace tandem::studies::merged_fold_test
