// A new GPU, cluster and framework are a file each: simulated, and validated against measured runs, without a line of code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/json_result.h"
#include "tests/cli/run_validate.h"

namespace tandem::cli::preset_files_test {
namespace {

using Json = nlohmann::json;

constexpr const char* gpu = R"(
memory_GiB: 64
memory_bandwidth_GBps: 4000
peak_TFLOPS: {bf16: 500}
efficiency:
  gemm: {bf16: 0.8}
  attention_forward: 0.6
  attention_backward: 0.5
  memory: 0.9
  launch_us: 3
pod: ./rack.yaml
)";

constexpr const char* cluster = R"(
gpu: ./chip.yaml
gpus_per_node: 4
nvlink_GBps: 200
nvlink_latency_us: 2
nics_per_node: 4
nic_gbps: 100
nic_latency_us: 10
fabric: {kind: switch}
)";

constexpr const char* framework = R"(
issue_us: {forward: 500, backward: 500, communication: 500}
runs: {zero: [2], sp: [false], recompute: [full]}
)";

constexpr const char* scenario = R"(
model: {layers: 4, hidden: 1024, heads: 8, kv_heads: 8, ffn: 4096, vocab: 4096}
cluster: {preset: ./rack.yaml, gpus: 8}
training: {sequence: 512, micro_batch: 1, global_batch: 16, precision: bf16}
)";

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Puts the three files into a folder.
template <typename Folder>
void drop_files_into(const Folder& folder) {
  write(folder / "chip.yaml", gpu);
  write(folder / "rack.yaml", cluster);
  write(folder / "house.yaml", framework);
}

Json simulated(const std::string& file, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"simulate", file, "--json", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const CommandResult run = run_tandem(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return checked_result(run.out);
}

TEST(PresetFiles, AGpuAClusterAndAFrameworkAreAFileEach) {
  const TemporaryFolder folder;
  drop_files_into(folder);
  write(folder / "s.yaml", scenario);
  const Json generic = simulated(folder / "s.yaml");
  expect_within_bounds(generic);
  EXPECT_NEAR(generic["mfu"].get<double>(), generic["model_tflops_per_gpu"].get<double>() / 500, 1e-9);  // the file's peak
  const Json in_house = simulated(folder / "s.yaml", {"--set", "training.framework=./house.yaml"});
  EXPECT_GT(in_house["step_time_s"], 2 * generic["step_time_s"].get<double>());  // it takes longer to issue than to run
}

TEST(PresetFiles, RunsNameThem) {
  const RunsTable table({tiny_run({{"gpu", "./chip.yaml"}, {"framework", "./house.yaml"}, {"zero", ""}, {"recompute", ""}})});
  drop_files_into(table);
  const CommandResult run = run_validate(table, {"--json", table / "out.json"});
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const Json row = Json::parse(read_all(table / "out.json"))["rows"][0];
  EXPECT_EQ(row["assumed"], Json({{"zero", "2"}, {"recompute", "full"}})) << row["note"];
  EXPECT_GT(row["predicted_step_time_s"], 0);
  EXPECT_THAT(row["scenario"].get<std::string>(), testing::HasSubstr("rack.yaml"));
}

}  // namespace
}  // namespace tandem::cli::preset_files_test
