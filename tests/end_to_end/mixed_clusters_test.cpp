// Clusters of different GPUs, placed ranks, faulty links: what the result and the executed step say.

#include <gtest/gtest.h>

#include "scenarios/mesh/slowest_gpu.h"
#include "scenarios/reading/load.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::mixed_clusters_test {
namespace {

TEST(MixedGpus, RanksRunOnTheGpusOfTheirNodes) {
  const Scenario scenario = tiny_cluster({"parallelism.dp=16", "training.global_batch=16", "parallelism.placement=round-robin",
                                          "training.precision=bf16", "cluster.other_gpus=[{nodes: 1, gpu: a100-80gb}]",
                                          "faults.slow_gpu={rank: 2, factor: 0.5}"});
  const World world = make_world(scenario, false);
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    const Device& device = world.devices[world.ranks[rank].device];
    EXPECT_EQ(device.name, rank % 2 == 0 ? "h100-sxm-80gb" : "a100-80gb") << rank;  // dealt out to two nodes
    EXPECT_EQ(device.speed, (rank == 2 ? 0.5 : 1) * slowest_of(16, device.efficiency.spread)) << rank;
  }
  EXPECT_EQ(world.devices.size(), 3U);
}

TEST(MixedGpus, MfuCountsTheMeanPeakAndTheSmallestMemory) {
  const std::vector<std::string> base = words("parallelism.dp=32 training.global_batch=32 training.precision=bf16");
  std::vector<std::string> mixed = base;
  mixed.emplace_back("cluster.other_gpus=[{nodes: 3, gpu: a100-40gb}]");
  const Scenario scenario = tiny_cluster(mixed);
  const StepResult result = simulate_step(scenario, true).result;
  const StepResult uniform = simulate_step(tiny_cluster(base), true).result;
  const auto bf16 = static_cast<std::size_t>(DType::bf16);
  const Device& other = scenario.cluster.other_gpus.front().gpu;
  const double mean = (3 * scenario.cluster.gpu.peak[bf16] + other.peak[bf16]) / 4;
  EXPECT_NEAR(result.mfu, result.model_flops_per_gpu / mean, 1e-12 * result.mfu);
  EXPECT_EQ(result.gpu_memory, other.memory);
  EXPECT_EQ(result.gpu, "h100-sxm-80gb + a100-40gb");
  EXPECT_GT(result.step_time, uniform.step_time);
  EXPECT_EQ(result.rank_classes, 2U);
}

TEST(MixedGpus, AllNeedTheArithmetic) {
  try {
    tiny_cluster({"training.precision=fp8", "cluster.gpus=8", "parallelism.dp=8"});
    tiny_cluster({"training.precision=fp8", "parallelism.dp=16", "training.global_batch=16",
                  "cluster.other_gpus=[{nodes: 1, gpu: a100-80gb}]"});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("a100-80gb has no fp8 arithmetic"), std::string::npos) << error.what();
  }
}

// The numbers of a step do not depend on where its ranks are, nor on what they go through.
TEST(PlacedRanks, ComputeTheUnshardedStep) {
  for (const char* placement : {"round-robin", "[7,3,5,1,0,2,6,4]"}) {
    EXPECT_LT(largest_difference(tiny_cluster(
                  {"parallelism.tp=2", "parallelism.pp=2", "parallelism.dp=2", "parallelism.zero=3", "cluster.gpus_per_node=4",
                   "cluster.nics_per_node=4", std::string("parallelism.placement=") + placement,
                   "faults.dead_link=[{nic: 1}, {leaf: 0, cable: 1}]", "cluster.other_gpus=[{nodes: 1, gpu: h200}]"})),
              1e-5);
    // A token's experts in one of two nodes, which with another placement are other ranks.
    EXPECT_LT(largest_difference(tiny_cluster({"parallelism.dp=8", "parallelism.ep=4",
                                               "model.moe={experts: 8, top_k: 2, ffn: 24}", "cluster.gpus_per_node=4",
                                               "cluster.nics_per_node=4", std::string("parallelism.placement=") + placement})),
              1e-5);
  }
}

// A custom fabric of two leaves below a spine, without oversubscription, is the fat tree that it spells out.
TEST(CustomFabrics, SpellOutWhatAFatTreeIs) {
  const std::string mesh =
      "parallelism.tp=2 parallelism.dp=8 training.global_batch=8 cluster.gpus_per_node=4 cluster.nics_per_node=4";
  std::vector<std::string> tree = words(mesh + " cluster.fabric.leaf_ports=8 cluster.fabric.rail_optimized=false");
  tree.emplace_back("cluster.fabric.tiers=2");
  tree.emplace_back("cluster.fabric.oversubscription=[1,1]");
  std::vector<std::string> custom = words(mesh);
  custom.emplace_back("cluster.fabric.kind=custom");
  custom.emplace_back(
      "cluster.fabric.switches=[{name: a, nics: 0-7, up: {to: s, cables: 8, gbps: 400}}, "
      "{name: b, nics: 8-15, up: {to: s, cables: 8, gbps: 400}}, {name: s}]");
  const double expected = simulate_step(tiny_cluster(tree), true).result.step_time;
  EXPECT_NEAR(simulate_step(tiny_cluster(custom), true).result.step_time, expected, 1e-9 * expected);
}

// Every NIC of two idle nodes carries one ring; without one of them its GPU's share goes over a neighbour's, which carries twice
// as much. Rings of all channels move at the pace of the slowest.
TEST(FaultyLinks, MakeTheStepSlower) {
  const auto time = [](const std::vector<std::string>& faults) {
    std::vector<std::string> overrides = words(
        "parallelism.dp=16 training.global_batch=16 parallelism.zero=0 model.hidden=512 model.ffn=4096 "
        "training.overlap.dp=false");
    overrides.insert(overrides.end(), faults.begin(), faults.end());
    return simulate_step(tiny_cluster(overrides), true).result.step_time;
  };
  const double healthy = time({});
  EXPECT_GT(time({"faults.dead_link={nic: 3}"}), healthy);
  EXPECT_GT(time({"faults.slow_link={nic: 3, factor: 0.2}"}), healthy);
  EXPECT_GT(time({"faults.slow_link={rail: 3, factor: 0.2}"}), healthy);
  EXPECT_GT(time({"faults.slow_link={gpu: 3, factor: 0.1}"}), healthy);
}

}  // namespace
}  // namespace tandem::studies::mixed_clusters_test
