// What experts move and keep, counted from the DAG, against closed forms.

#include <gtest/gtest.h>

#include <map>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/simulate.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::experts_volume_test {
namespace {

std::vector<std::string> with_experts(const std::string& overrides) {
  std::vector<std::string> list = words("model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24");
  for (const std::string& o : words(overrides)) list.push_back(o);
  return list;
}

/// All-to-alls of one rank in one forward pass of one layer and micro-batch.
std::vector<Bytes> forward_exchanges(const Scenario& scenario) {
  const Dag dag = lower(scenario, make_world(scenario, true));
  std::vector<Bytes> bytes;
  for (const Task& task : dag.tasks) {
    const bool first = task.rank == 0 && task.layer == 0 && task.micro_batch == 0 && task.phase == Phase::forward;
    if (first && task.op == OpKind::all_to_all) bytes.push_back(dag.groups[task.group].bytes);
  }
  return bytes;
}

// 64 experts over 8 ranks; 16,384 tokens are 2,048 per rank. With two choices of 4,096 bf16 numbers each, 4,096 choices, of which
// 7/8 leave: 3,584, or 3,584 * 8,192 B = 29.4 MB per rank and 8 * 29.4 = 235 MB in all. Combine moves the same again, so that
// forward moves 2 * tokens * k * d * (1 - 1/ep).
TEST(ExpertVolume, WorkedCase) {
  const Scenario scenario =
      tiny_cluster(words("model.moe.experts=64 model.moe.top_k=2 model.moe.ffn=16 model.hidden=4096 model.heads=32 "
                         "model.kv_heads=4 model.head_dim=4 "
                         "training.sequence=2048 training.precision=bf16 parallelism.dp=8 parallelism.ep=8"));
  const std::vector<Bytes> exchanges = forward_exchanges(scenario);
  ASSERT_EQ(exchanges.size(), 2U);
  EXPECT_EQ(exchanges[0], exchanges[1]);
  const Bytes leaves = exchanges[0] / 8 * 7;
  EXPECT_EQ(leaves / (4096 * 2), 3584);
  EXPECT_EQ(leaves, 29'360'128);
  EXPECT_NEAR(static_cast<double>(8 * leaves), 235e6, 0.5e6);
  EXPECT_EQ(exchanges[0] / 8 * 7 + exchanges[1] / 8 * 7, 2 * (2048 * 2 * 4096) / 8 * 7 * 2);
}

// Without sp each of two tensor-parallel ranks dispatches half of the tokens it shares with the other, and gathers the rest of
// what came back: b s d per layer and pass, where a dense MLP would all-reduce as much. Backward also the logits' gradients,
// fp32.
TEST(ExpertVolume, DuplicateTokensAreSentOnce) {
  const auto volumes = [](const std::string& overrides) {
    const Scenario scenario =
        tiny_cluster(with_experts("parallelism.tp=2 parallelism.ep=2 training.global_batch=1 " + overrides));
    return volumes_of(lower(scenario, make_world(scenario, false)), 0);
  };
  const auto duplicate = volumes(""), apart = volumes("parallelism.sp=true");
  const Bytes bsd = 16 * 32 * 4, logits = 16 * 8 * 4, per_token = 16 * 4;
  EXPECT_EQ(duplicate.at("all_gather tp forward"), (Volume{4, 4 * bsd}));
  EXPECT_EQ(duplicate.at("all_gather tp backward-input"), (Volume{4 + 4, 4 * (bsd + logits)}));
  // Attention, embedding, loss; attention and head.
  EXPECT_EQ(duplicate.at("all_reduce tp forward"), (Volume{4 + 1 + 3, (4 + 1) * bsd + 3 * per_token}));
  EXPECT_EQ(duplicate.at("all_reduce tp backward-input"), (Volume{4 + 1, (4 + 1) * bsd}));
  for (const char* pass : {"all_to_all ep forward", "all_to_all ep backward-input"}) {
    EXPECT_EQ(duplicate.at(pass), (Volume{4 * 2, 4 * 2 * bsd}));  // two choices of half the tokens
    EXPECT_EQ(duplicate.at(pass), apart.at(pass));
  }
}

using Times = std::map<Tier, double>;

/// What the busiest link of each tier carries in the experts' exchange, in units of what one pair of its eight ranks exchanges.
Times busiest(const std::string& overrides) {
  const World world = make_world(tiny_cluster(with_experts("parallelism.dp=8 parallelism.ep=8 " + overrides)), false);
  Times found;
  for (const Communicator& communicator : world.communicators) {
    if (communicator.axis != Axis::ep) continue;
    const Paths& paths = communicator.layout.paths.front();
    for (const Crossing& crossing : paths.crossings) {
      double& most = found[world.links[crossing.link].tier];
      most = std::max(most, 7.0 / paths.channels * crossing.multiplicity);
    }
  }
  return found;
}

// On one node a port sends to 7 others; on two nodes of 4 to 3 others, and a NIC to 4, of which 3 change the rail over NVLink.
TEST(ExpertVolume, LinksCarryWhatPairsExchange) {
  EXPECT_EQ(busiest(""), (Times{{Tier::nvlink, 7}}));
  EXPECT_EQ(busiest("cluster.gpus_per_node=4 cluster.nics_per_node=4 cluster.fabric.rail_optimized=false"),
            (Times{{Tier::nvlink, 3 + 3}, {Tier::nic, 4}}));
}

// Two choices in one node: half as many rows cross. A NIC carries 4 * 1/2 of pairs' rows, and a port those to 3 GPUs of its node
// from the 2 nodes' GPUs of its place.
TEST(ExpertVolume, NodeLimitHalvesWhatNicsCarry) {
  EXPECT_EQ(busiest("cluster.gpus_per_node=4 cluster.nics_per_node=4 cluster.fabric.rail_optimized=false model.moe.node_limit=1"),
            (Times{{Tier::nvlink, 2 * 3}, {Tier::nic, 4 / 2}}));
}

// ZeRO over d ranks as for a dense model, but a rank holds 1/ep of the experts and shares their states with d/ep ranks alone.
// bf16 weights and gradients of 2 bytes, fp32 master copy and two moments, 12.
TEST(ExpertMemory, StatesAreShardedAmongReplicas) {
  constexpr std::int64_t experts = 4 * 8 * 3 * 24 * 32;
  constexpr std::int64_t dense = 2 * 96 * 32 + 4 * (2 * 32 * 32 + 2 * 16 * 32 + 8 * 32 + 2 * 32) + 32;
  for (const int ep : {1, 2, 4, 8}) {
    const double replicas = 8.0 / ep, held = static_cast<double>(experts) / ep;
    const double by_zero[] = {dense * 16 + held * 16, dense * (4 + 12.0 / 8) + held * (4 + 12 / replicas),
                              dense * (2 + 14.0 / 8) + held * (2 + 14 / replicas), dense * 16.0 / 8 + held * 16 / replicas};
    for (std::size_t zero = 0; zero < 4; ++zero) {
      const Scenario scenario = tiny_cluster(
          with_experts("training.precision=bf16 training.grad_dtype=bf16 parallelism.dp=8 parallelism.ep=" + std::to_string(ep) +
                       " parallelism.zero=" + std::to_string(zero)));
      const Dag dag = lower(scenario, make_world(scenario, true));
      const MemoryUse use = memory_use(dag, simulate(dag).timeline)[0];
      EXPECT_EQ(static_cast<double>(use.parameters + use.gradients + use.optimizer), by_zero[zero])
          << "ep " << ep << ", zero " << zero;
    }
  }
}

}  // namespace
}  // namespace tandem::studies::experts_volume_test
