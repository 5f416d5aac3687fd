// `tandem topology`: text as it was, JSON with its keys, wrong input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::topology_test {
namespace {

using testing::ElementsAre;

constexpr int wrong_input = 2;
const std::string data = TANDEM_SOURCE_DIR "/tests/cli/data/";

std::string text_of(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

CommandResult topology(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "topology");
  return run_tandem(arguments);
}

TEST(Topology, PrintsASmallCluster) {
  const CommandResult run = topology({data + "two-pods.yaml"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, text_of(data + "two-pods.topology.txt"));
}

// A stage is a node, a pipeline a leaf's two nodes. The 4 rings of dp cross all 4 leaves and both pods, of which each sends over
// 2 cables of 50 GB/s: 25 GB/s for each ring. Half of the nodes is a pod: 100 GB/s, of the 400 of its NICs.
TEST(Topology, JsonHoldsTheSame) {
  const CommandResult run = topology({data + "two-pods.yaml", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["scenario"], "two-pods");
  EXPECT_EQ(json["cluster"]["nodes"], 8);
  EXPECT_EQ(json["fabric"]["leaves"], 4);
  EXPECT_EQ(json["fabric"]["pods"], 2);
  EXPECT_EQ(json["fabric"]["bisection_Bps"], 100e9);
  EXPECT_EQ(json["fabric"]["bisection_share"], 0.25);
  EXPECT_EQ(json["links"][2]["tier"], "leaf");
  EXPECT_EQ(json["links"][2]["cables"], 16);
  const nlohmann::json& dp = json["communicators"][1];
  EXPECT_EQ(dp["family"], "dp");
  EXPECT_EQ(dp["communicators"], 4);
  EXPECT_EQ(dp["ranks"], 4);
  EXPECT_EQ(dp["nodes"], 4);
  EXPECT_EQ(dp["reach"], "core");
  EXPECT_THAT(dp["links"]["spine"], ElementsAre(4, 4));
  EXPECT_THAT(dp["alone_Bps"], ElementsAre(50e9, 50e9));
  EXPECT_THAT(dp["together_Bps"], ElementsAre(25e9, 25e9));
  EXPECT_EQ(json["communicators"][2]["alone_Bps"], nullptr);
}

TEST(Topology, WritesJsonBesideTheText) {
  const TemporaryFolder folder;
  const CommandResult run = topology({data + "two-pods.yaml", "--json", folder / "t.json"});
  EXPECT_EQ(run.out, text_of(data + "two-pods.topology.txt"));
  EXPECT_EQ(nlohmann::json::parse(text_of(folder / "t.json"))["cluster"]["gpus"], 16);
}

TEST(Topology, OneRankHasNoCommunicators) {
  const CommandResult run = topology({data + "two-pods.yaml", "--set", "cluster.gpus=1", "--set", "parallelism.tp=1", "--set",
                                      "parallelism.sp=false", "--set", "parallelism.pp=1", "--set", "parallelism.dp=1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::HasSubstr("No communicators: one rank alone"));
  EXPECT_THAT(run.out, testing::HasSubstr("of 1 GPUs"));
}

TEST(Topology, RefusesWrongInput) {
  expect_refusal(topology({data + "two-pods.yam"}), wrong_input, {"two-pods.yam: cannot be read", "did you mean"});
  expect_refusal(topology({data + "two-pods.yaml", "--set", "cluster.fabric.leaf_ports=0"}), wrong_input,
                 {"--set cluster.fabric.leaf_ports=0", "from 1 to"});
  expect_refusal(topology({data + "two-pods.yaml", "--no-fold"}), wrong_input, {"no option `--no-fold`"});
  expect_refusal(topology({}), wrong_input, {"scenario is required"});
  expect_refusal(topology({data + "two-pods.yaml", "--set",
                           "cluster.nccl_topology=" TANDEM_SOURCE_DIR "/tests/topology/data/gpus-without-nvswitch.xml"}),
                 wrong_input, {"gpus-without-nvswitch.xml:5:9", "joins GPUs without a switch"});
}

}  // namespace
}  // namespace tandem::cli::topology_test
