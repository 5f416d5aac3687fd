// Ranks on some of a larger cluster's GPUs.
#include "scenarios/mesh/rank_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::rank_placement_test {
namespace {

using testing::HasSubstr;

Scenario base(const std::vector<std::string>& overrides) { return parse_scenario(base_text(), "base", overrides); }

std::string refusal(const std::vector<std::string>& overrides) {
  try {
    base(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PartOfACluster, HoldsAsManyRanksAsDpSays) {
  const Scenario scenario = base({"cluster.gpus=80", placed_on({1, 4, 5, 9})});
  EXPECT_EQ(scenario.parallelism.world_size(), 32);
  EXPECT_EQ(scenario.cluster.gpus, 80);
  const RankPlaces places(scenario);
  EXPECT_EQ(places.node(0), 1);
  EXPECT_EQ(places.gpu(31), 79U);
  EXPECT_EQ(lower(scenario, make_world(scenario, true)).info.gpus, 32);
}

TEST(PartOfACluster, NeedsAListAndNoMoreRanksThanGpus) {
  EXPECT_THAT(refusal({"cluster.gpus=80"}), HasSubstr("makes 32 ranks for 80 GPUs, expected dp 10"));
  EXPECT_THAT(refusal({"cluster.gpus=80", "parallelism.dp=", placed_on({1, 4, 5, 9})}), HasSubstr("lists 32 GPUs for 80 ranks"));
  EXPECT_THAT(refusal({"cluster.gpus=80", placed_on({1, 4, 5})}),
              HasSubstr("lists 24 GPUs for 32 ranks, expected 32 of 0 to 79"));
  EXPECT_THAT(refusal({"cluster.gpus=80", placed_on({1, 4, 5, 10})}), HasSubstr("there is no GPU 80, expected 0 to 79"));
  EXPECT_THAT(refusal({"cluster.gpus=80", placed_on({1, 4, 5, 4})}), HasSubstr("GPU 32 is given to rank 8 and to rank 24"));
  EXPECT_THAT(refusal({"cluster.gpus=24", placed_on({0, 1, 2, 3})}), HasSubstr("makes 32 ranks for 24 GPUs"));
  EXPECT_THAT(refusal({"cluster.gpus=80", placed_on({1, 4, 5, 9}), "faults.slow_gpu={rank: 32, factor: 0.5}"}),
              HasSubstr("rank 32 does not exist, expected 0 to 31"));
}

TEST(PartOfACluster, KeepsNodesTogetherWhereNodesAreListedWhole) {
  EXPECT_TRUE(keeps_nodes_together(base({})));
  EXPECT_TRUE(keeps_nodes_together(base({"cluster.gpus=80", placed_on({9, 1, 5, 4})})));
  EXPECT_FALSE(keeps_nodes_together(base({"parallelism.placement=round-robin"})));
}

TEST(PlacementFile, MayBeAYamlListWithComments) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tandem_placement_list";
  std::filesystem::create_directories(folder);
  std::ofstream list(folder / "placement.yaml"), wrong(folder / "wrong.yaml");
  list << "# of 32 ranks\n";
  for (int rank = 0; rank < 32; ++rank) {
    list << "- " << 31 - rank << "\n";
    wrong << (rank == 7 ? "-" : "- " + std::to_string(rank)) << "\n";
  }
  list.close();
  wrong.close();
  std::ofstream(folder / "scenario.yaml") << base_text();
  const auto load = [&](const std::string& file) {
    return load_scenario((folder / "scenario.yaml").string(), {"parallelism.placement={file: " + file + "}"});
  };
  EXPECT_EQ(load("placement.yaml").parallelism.placement.gpus[3], 28U);
  EXPECT_THROW(load("wrong.yaml"), InputError);
  std::ofstream(folder / "empty.yaml").close();
  try {
    load("empty.yaml");
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.sentence(), "is empty, expected a list of GPUs, one a line");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tandem::scenarios::rank_placement_test
