#include "scenarios/mesh/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::world_test {
namespace {

using testing::ElementsAre;

Scenario base(const std::vector<std::string>& overrides = {}) { return parse_scenario(base_text(), "base", overrides); }

const std::vector<std::string> slow_13{"faults.slow_gpu={rank: 13, factor: 0.5}"};

const Communicator* communicator(const World& world, RankIndex rank, Slot slot) {
  const CommunicatorId id = world.communicator(rank, slot);
  return id == no_id ? nullptr : &world.communicators[id];
}

class Worlds : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  const Scenario scenario = base(GetParam());
  const World folded = make_world(scenario, true);
  const World whole = make_world(scenario, false);
};
using Overrides = std::vector<std::string>;
INSTANTIATE_TEST_SUITE_P(
    World, Worlds,
    testing::Values(Overrides{}, slow_13, Overrides{"faults.slow_gpu=[{rank: 3, factor: 0.5}, {rank: 11, factor: 0.5}]"},
                    Overrides{"parallelism.zero=0"}, Overrides{"parallelism.pp=1", "parallelism.dp=8"},
                    Overrides{"model.tied_embeddings=true"},
                    Overrides{"parallelism.pp=4", "parallelism.vpp=2", "parallelism.dp=2", "training.schedule=interleaved-1f1b"},
                    Overrides{"parallelism.order=[tp, pp, cp, ep, dp]"}, Overrides{"parallelism.order=[dp, tp, cp, ep, pp]"},
                    Overrides{"cluster.gpus=36", "cluster.gpus_per_node=6", "cluster.nics_per_node=6", "parallelism.tp=2",
                              "parallelism.dp=9", "training.global_batch=18"},
                    Overrides{"parallelism.tp=2", "parallelism.dp=8", "cluster.fabric.leaf_ports=3"},
                    Overrides{"cluster.gpus=24", "cluster.fabric.rail_optimized=false", "parallelism.tp=2", "parallelism.pp=4",
                              "parallelism.dp=3", "training.global_batch=12"},
                    Overrides{"cluster.nics_per_node=2"},
                    Overrides{"cluster.fabric.leaf_ports=1", "cluster.fabric.pod_leaves=8"}));

TEST_P(Worlds, FoldedCountsSumToTheWorld) {
  std::vector<std::uint32_t> counts(folded.ranks.size(), 0);
  for (const RankIndex rank : folded.class_of) ++counts[rank];
  for (RankIndex rank = 0; rank < folded.ranks.size(); ++rank) {
    EXPECT_EQ(folded.ranks[rank].count, counts[rank]);
    EXPECT_EQ(folded.class_of[folded.ranks[rank].world_rank], rank);
  }
  EXPECT_EQ(folded.class_of.size(), static_cast<std::size_t>(scenario.cluster.gpus));
}

TEST_P(Worlds, AClassRunsOneProgramOnOneKindOfDevice) {
  for (std::uint32_t rank = 0; rank < folded.class_of.size(); ++rank) {
    const Rank& representative = folded.ranks[folded.class_of[rank]];
    EXPECT_EQ(representative.pp, whole.ranks[rank].pp);
    EXPECT_EQ(folded.devices[representative.device].speed, whole.devices[whole.ranks[rank].device].speed);
  }
}

TEST_P(Worlds, FoldedCommunicatorsKnowTheirTrueSizeAndPlacement) {
  for (std::uint32_t rank = 0; rank < folded.class_of.size(); ++rank) {
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      const Communicator* one = communicator(folded, folded.class_of[rank], static_cast<Slot>(slot));
      const Communicator* all = communicator(whole, rank, static_cast<Slot>(slot));
      ASSERT_EQ(one == nullptr, all == nullptr) << "rank " << rank << ", slot " << slot;
      if (one == nullptr) continue;
      EXPECT_EQ(one->members.size(), all->members.size());
      EXPECT_EQ(one->layout.paths.size(), all->layout.paths.size());
      EXPECT_EQ(one->layout.paths.front().channels, all->layout.paths.front().channels);
      EXPECT_EQ(one->layout.nodes, all->layout.nodes);
      EXPECT_EQ(one->layout.inter_latency, all->layout.inter_latency);
    }
  }
}

TEST_P(Worlds, EveryUnfoldedCommunicatorContainsItsRank) {
  ASSERT_EQ(whole.ranks.size(), static_cast<std::size_t>(scenario.cluster.gpus));
  for (RankIndex rank = 0; rank < whole.ranks.size(); ++rank) {
    EXPECT_EQ(whole.ranks[rank].world_rank, rank);
    EXPECT_EQ(whole.ranks[rank].count, 1);
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      const Communicator* c = communicator(whole, rank, static_cast<Slot>(slot));
      if (c != nullptr) {
        EXPECT_TRUE(std::ranges::count(c->members, rank) == 1) << "rank " << rank << ", slot " << slot;
      }
    }
  }
}

TEST_P(Worlds, PairsGoFromTheSenderToTheReceiver) {
  for (RankIndex rank = 0; rank < whole.ranks.size(); ++rank) {
    if (const Communicator* c = communicator(whole, rank, Slot::send_forward)) {
      EXPECT_EQ(c->members.front(), rank);
    }
    if (const Communicator* c = communicator(whole, rank, Slot::receive_forward)) {
      EXPECT_EQ(c->members.back(), rank);
    }
    if (const Communicator* c = communicator(whole, rank, Slot::send_backward)) {
      EXPECT_EQ(c->members.front(), rank);
    }
    if (const Communicator* c = communicator(whole, rank, Slot::receive_backward)) {
      EXPECT_EQ(c->members.back(), rank);
    }
  }
}

/// For each link, how long it is busy when every communicator moves one byte per channel; (seconds, number of links), ascending.
std::vector<std::pair<Seconds, std::int64_t>> link_times(const World& world) {
  std::vector<Seconds> busy(world.links.size(), 0);
  for (const Communicator& c : world.communicators) {
    for (const Paths& paths : c.layout.paths) {
      for (const Crossing& crossing : paths.crossings) {
        busy[crossing.link] += crossing.multiplicity / world.links[crossing.link].capacity;
      }
    }
  }
  std::vector<std::pair<Seconds, std::int64_t>> times;
  for (LinkId link = 0; link < world.links.size(); ++link) times.emplace_back(busy[link], world.links[link].count);
  std::ranges::sort(times);
  return times;
}

TEST_P(Worlds, FoldedLinksAreAsBusyAsTheLinksTheyStandFor) {
  std::vector<Seconds> spread;  // each folded link as often as it counts
  for (const auto& [seconds, count] : link_times(folded)) spread.insert(spread.end(), static_cast<std::size_t>(count), seconds);
  const auto expected = link_times(whole);
  ASSERT_EQ(spread.size(), expected.size());
  for (std::size_t i = 0; i < spread.size(); ++i) EXPECT_DOUBLE_EQ(spread[i], expected[i].first);
}

// tp 4 x dp 4 x pp 2 on four nodes of 8: two data-parallel ranks per node, two nodes per stage, all below one leaf per rail.
TEST(World, ASymmetricStepFoldsToOneRankPerStage) {
  const World world = make_world(base(), true);
  ASSERT_EQ(world.ranks.size(), 2);
  EXPECT_THAT((std::array{world.ranks[0].count, world.ranks[1].count}), ElementsAre(16, 16));
}

TEST(World, CommunicatorsHaveTheSizesOfTheMesh) {
  Scenario scenario = base();  // tp 4, pp 2
  scenario.parallelism.cp = 2;
  scenario.parallelism.dp = 2;
  const World world = make_world(scenario, true);
  for (RankIndex rank = 0; rank < world.ranks.size(); ++rank) {
    EXPECT_EQ(communicator(world, rank, Slot::tp)->members.size(), 4);
    EXPECT_EQ(communicator(world, rank, Slot::data)->members.size(), 2 * 2);
    EXPECT_EQ(communicator(world, rank, Slot::gradient_norm)->members.size(), 32);  // zero 1: each rank owns a part
    EXPECT_EQ(communicator(world, rank, Slot::embedding), nullptr);                 // not tied
    const bool first = world.ranks[rank].pp == 0;
    EXPECT_EQ(communicator(world, rank, Slot::send_forward) != nullptr, first);
    EXPECT_EQ(communicator(world, rank, Slot::receive_backward) != nullptr, first);
    EXPECT_EQ(communicator(world, rank, Slot::receive_forward) != nullptr, !first);
    EXPECT_EQ(communicator(world, rank, Slot::send_backward) != nullptr, !first);
  }
}

TEST(World, WithoutZeroTheGradientNormSpansOneReplica) {
  const World world = make_world(base({"parallelism.zero=0"}), true);
  EXPECT_EQ(communicator(world, 0, Slot::gradient_norm)->members.size(), 4 * 2);  // tp x pp
}

TEST(World, TiedEmbeddingsPairTheFirstAndTheLastStage) {
  const World world = make_world(base({"model.tied_embeddings=true", "parallelism.pp=4", "parallelism.dp=2"}), false);
  // rank = tp + 4 dp + 8 pp
  EXPECT_THAT(communicator(world, 5, Slot::embedding)->members, ElementsAre(5, 8 * 3 + 5));
  EXPECT_EQ(communicator(world, 8 + 5, Slot::embedding), nullptr);
}

TEST(World, SeveralModelChunksCloseTheCycleOfStages) {
  const World world = make_world(
      base({"parallelism.pp=4", "parallelism.vpp=2", "parallelism.dp=2", "training.schedule=interleaved-1f1b"}), false);
  EXPECT_THAT(communicator(world, 8 * 3 + 5, Slot::send_forward)->members, ElementsAre(8 * 3 + 5, 5));
  EXPECT_THAT(communicator(world, 5, Slot::send_backward)->members, ElementsAre(5, 8 * 3 + 5));
}

TEST(World, ASlowGpuIsAClassOfItsOwnAndSplitsItsGroups) {
  const World even = make_world(base(), true);
  const World world = make_world(base(slow_13), true);
  EXPECT_GT(world.ranks.size(), even.ranks.size());
  const RankIndex slow = world.class_of[13];
  EXPECT_EQ(world.ranks[slow].count, 1);
  const auto speed = [&](std::uint32_t rank) { return world.devices[world.ranks[world.class_of[rank]].device].speed; };
  EXPECT_DOUBLE_EQ(speed(13), 0.5 * speed(0));
  // 13 = tp 1, dp 3, pp 0. Its tensor-parallel peers are not like those of other groups, nor are its data-parallel peers.
  const auto apart = [&](std::uint32_t a, std::uint32_t b) { return world.class_of[a] != world.class_of[b]; };
  EXPECT_TRUE(apart(12, 8));
  EXPECT_TRUE(apart(9, 8));
  EXPECT_TRUE(apart(16 + 13, 16 + 12));  // the stage that it sends to
  EXPECT_LT(world.ranks.size(), 32);
  EXPECT_FALSE(apart(0, 2));  // tp 0 and 2 of dp 0 see the slow rank the same way: through a peer's data-parallel group
}

}  // namespace
}  // namespace tandem::scenarios::world_test
