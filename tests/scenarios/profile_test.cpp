// Where a profile comes from: a cluster, a GPU, a preset in a file; and that the complete scenario tells profiles apart.
#include "scenarios/reading/profile.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scenarios/reading/document.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/presets.h"
#include "tests/runtime/temporary_folder.h"
#include "traces/profile_file.h"

namespace tandem::scenarios::profile_test {
namespace {

Profile one_kernel(Seconds time) {
  const OperandType type{Shape(8), DType::f32};
  return {{}, {{{OpKind::scale, {type, type}, ScaleAttributes{}}, {time, time, time, 1}}}, {}, {}};
}

class ScenarioProfile : public testing::Test {
 protected:
  TemporaryFolder folder_;

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name, std::ios::binary) << text; }
  void write(const std::string& name, Seconds time) { write(name, to_bytes(one_kernel(time))); }

  static std::string text(const std::string& cluster) {
    return "model: tiny-llama\ncluster: {" + cluster + "}\ntraining: {sequence: 64, global_batch: 64, precision: bf16}\n";
  }
  ClusterSpec cluster(const std::string& fields, const std::vector<std::string>& overrides = {}) {
    return parse_scenario(text(fields), folder_ / "s.yaml", overrides).cluster;
  }
  static Seconds time_of(const Device& gpu) { return gpu.measured.empty() ? 0 : gpu.measured.front().timing.median; }

  std::string complete(const std::string& fields) {
    YamlNode document = parse_yaml(text(fields), "s.yaml");
    tidy_names(document);
    resolve_presets(document, folder_ / "");
    read_document(document, "s");
    return to_yaml(document);
  }
};

TEST_F(ScenarioProfile, IsThatOfTheClustersGpu) {
  write("a", 1e-3);
  EXPECT_EQ(time_of(cluster("preset: dgx-h100, gpus: 8, profile: a").gpu), 1e-3);
  EXPECT_EQ(time_of(cluster("preset: dgx-h100, gpus: 8, gpu: {preset: h100-sxm-80gb, profile: a}").gpu), 1e-3);
  EXPECT_EQ(time_of(cluster("preset: dgx-h100, gpus: 8").gpu), 0);
}

TEST_F(ScenarioProfile, GoesBeforeThePresets) {
  write("a", 1e-3);
  write("b", 2e-3);
  write("my-gpu.yaml",
        "{memory_GiB: 80, memory_bandwidth_GBps: 3000, peak_TFLOPS: {bf16: 900}, profile: a,\n efficiency: {gemm: {bf16: 0.7}, "
        "attention_forward: 0.5, attention_backward: 0.5, memory: 0.9, launch_us: 4}}\n");
  const std::string mine = "preset: dgx-h100, gpus: 16, gpu: ./my-gpu.yaml";
  EXPECT_EQ(time_of(cluster(mine).gpu), 1e-3);
  EXPECT_EQ(time_of(cluster(mine + ", profile: b").gpu), 2e-3);
  EXPECT_EQ(time_of(cluster(mine, {"cluster.profile=b"}).gpu), 2e-3);
  EXPECT_EQ(time_of(cluster(mine + ", profile: none").gpu), 0);
  EXPECT_EQ(time_of(cluster(mine + ", profile: b", {"cluster.profile="}).gpu), 1e-3);
}

TEST_F(ScenarioProfile, OtherGpusHaveTheirOwn) {
  write("a", 1e-3);
  write("b", 2e-3);
  const ClusterSpec mixed =
      cluster("preset: dgx-h100, gpus: 16, profile: a, other_gpus: {nodes: 1, gpu: {preset: a100-80gb, profile: b}}");
  EXPECT_EQ(time_of(mixed.gpu), 1e-3);
  EXPECT_EQ(time_of(mixed.other_gpus.at(0).gpu), 2e-3);
}

TEST_F(ScenarioProfile, PathsCountFromTheFileThatNamesThem) {
  std::filesystem::create_directory(folder_ / "clusters");
  write("clusters/a", 1e-3);
  write("clusters/mine.yaml",
        "{gpu: h100-sxm-80gb, gpus_per_node: 8, nvlink_GBps: 450, nvlink_latency_us: 3, nics_per_node: 0, profile: a}\n");
  EXPECT_EQ(time_of(cluster("preset: clusters/mine.yaml, gpus: 8").gpu), 1e-3);
}

TEST_F(ScenarioProfile, TheCompleteScenarioChangesWithTheContents) {
  const std::string fields = "preset: dgx-h100, gpus: 8, profile: a";
  write("a", 1e-3);
  const std::string before = complete(fields);
  EXPECT_EQ(complete(fields), before);
  write("a", 2e-3);
  EXPECT_NE(complete(fields), before);
  // It can be simulated from anywhere: the path is absolute.
  EXPECT_EQ(time_of(parse_scenario(complete(fields), "/elsewhere/s.yaml", {}).cluster.gpu), 2e-3);
}

}  // namespace
}  // namespace tandem::scenarios::profile_test
