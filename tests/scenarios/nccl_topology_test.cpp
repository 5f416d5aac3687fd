// `cluster.nccl_topology`: what the file says, below what the scenario says and above what the preset says.
#include "scenarios/reading/nccl_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "scenarios/reading/document.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/presets.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::scenarios::nccl_topology_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

const std::string folder = TANDEM_SOURCE_DIR "/tests/topology/data/";

std::string text(const std::string& cluster) {
  return "model: llama3-8b\ncluster: {" + cluster +
         "}\nparallelism: {tp: 4, pp: 2}\ntraining: {sequence: 8192, global_batch: 64}\n";
}

Scenario scenario(const std::string& cluster, const std::vector<std::string>& overrides = {}) {
  return parse_scenario(text(cluster), folder + "s.yaml", overrides);
}

const std::string shared_switches = "preset: dgx-h100, gpus: 32, nccl_topology: nics-behind-shared-switches.xml";

TEST(NcclTopologyField, ReplacesWhatThePresetSaysOfTheNode) {
  const ClusterSpec cluster = scenario(shared_switches).cluster;
  EXPECT_EQ(cluster.gpus_per_node, 8);
  EXPECT_EQ(cluster.nics_per_node, 4);
  EXPECT_EQ(cluster.nic_gbps, 200);
  EXPECT_EQ(cluster.nvlink_GBps, 300);
  EXPECT_EQ(cluster.nvlink_efficiency, 0.81);  // the file does not say
  EXPECT_THAT(cluster.pcie.nic_of_gpu, ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(cluster.pcie.ports, SizeIs(16));
}

TEST(NcclTopologyField, GivesWayToWhatTheScenarioSays) {
  const ClusterSpec cluster = scenario(shared_switches + ", nic_gbps: 100", {"cluster.nvlink_GBps=200"}).cluster;
  EXPECT_EQ(cluster.nic_gbps, 100);
  EXPECT_EQ(cluster.nvlink_GBps, 200);
  EXPECT_THAT(cluster.pcie.ports, SizeIs(16));
}

TEST(NcclTopologyField, AnotherNumberOfNicsLeavesThePcieTreeOut) {
  const ClusterSpec cluster = scenario(shared_switches + ", nics_per_node: 8").cluster;
  EXPECT_EQ(cluster.nic_gbps, 200);
  EXPECT_THAT(cluster.pcie.nic_of_gpu, IsEmpty());
  EXPECT_THAT(cluster.pcie.ports, IsEmpty());
}

TEST(NcclTopologyField, IsReadFromAClustersFileToo) {
  const TemporaryFolder files;
  std::ofstream(files / "node.xml") << std::ifstream(folder + "one-nic-per-gpu.xml").rdbuf();
  std::ofstream(files / "mine.yaml") << "gpu: h100-sxm-80gb\nnvlink_latency_us: 3\nnic_latency_us: 14\nnccl_topology: node.xml\n";
  const ClusterSpec cluster = parse_scenario(text("preset: mine.yaml, gpus: 32"), files / "s.yaml", {}).cluster;
  EXPECT_EQ(cluster.nvlink_GBps, 450);
  EXPECT_EQ(cluster.nic_gbps, 400);
  EXPECT_THAT(cluster.pcie.ports, SizeIs(16));
}

// A study keeps complete scenarios, whose hash must follow the file's content.
TEST(NcclTopologyField, ACompleteScenarioHoldsWhatWasRead) {
  YamlNode document = parse_yaml(text(shared_switches), folder + "s.yaml");
  tidy_names(document);
  resolve_presets(document, folder);
  const std::string complete = to_yaml(document);
  EXPECT_THAT(complete, HasSubstr("pcie 0000:10:00.0"));
  const Scenario again = parse_scenario(complete, "elsewhere.yaml", {});
  EXPECT_THAT(again.cluster.pcie.nic_of_gpu, ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_DOUBLE_EQ(again.cluster.pcie.ports.front().GBps, scenario(shared_switches).cluster.pcie.ports.front().GBps);
}

std::string refusal(const std::string& cluster) {
  try {
    scenario(cluster);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NcclTopologyField, WrongFilesAreRefusedAtTheirPlace) {
  const std::string dgx = "preset: dgx-h100, gpus: 32, nccl_topology: ";
  EXPECT_THAT(refusal(dgx + "one-nic-per-gpu.xm"),
              AllOf(StartsWith(folder + "one-nic-per-gpu.xm: cannot be read"), HasSubstr("did you mean")));
  EXPECT_THAT(refusal(dgx + "[a.xml]"), AllOf(StartsWith(folder + "s.yaml:2:"), HasSubstr("is a list, expected the path")));
  EXPECT_THAT(refusal(dgx + "gpus-without-nvswitch.xml"),
              AllOf(StartsWith(folder + "gpus-without-nvswitch.xml:5:9: "),
                    HasSubstr("joins GPUs without a switch, and others have no such links")));
  EXPECT_THAT(refusal(dgx + "."), HasSubstr("is a folder, expected"));
  EXPECT_THAT(refusal(dgx + "{nic_of_gpu: [0, 9]}"), HasSubstr("nic_of_gpu holds `9`"));
  EXPECT_THAT(refusal(dgx + "{nic_of_gpu: [0, 1]}"), HasSubstr("lists 2 GPUs, expected gpus_per_node 8"));
}

}  // namespace
}  // namespace tandem::scenarios::nccl_topology_test
