// What `execute --dump` leaves for other programs. That PyTorch makes the same of it: tests/reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::execute_dump_test {
namespace {

const std::string tiny = scenario_file("tiny-host");

CommandResult dump(const std::string& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"execute", tiny, "--backend", "host", "--dump", folder};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tandem(arguments);
}

nlohmann::json header_of(const std::string& path) {
  const std::string file = read_all(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return nlohmann::json::parse(file.substr(sizeof length, length));
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST(ExecuteDump, HasEachParameterOnceWhateverTheMesh) {
  const TemporaryFolder folder;
  const std::string sharded = folder / "sharded", whole = folder / "whole/";
  ASSERT_EQ(dump(sharded).exit_code, 0);
  std::filesystem::create_directory(whole);  // an empty folder is taken
  std::vector<std::string> one_rank;
  for (const char* field :
       {"cluster.gpus=1", "parallelism.tp=1", "parallelism.sp=false", "parallelism.pp=1", "parallelism.dp=1"}) {
    one_rank.emplace_back("--set");
    one_rank.emplace_back(field);
  }
  const CommandResult run = dump(whole, one_rank);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::set<std::string> files{"gradients.safetensors", "optimizer.safetensors", "step.json",
                                    "tokens.safetensors",    "updated.safetensors",   "weights.safetensors"};
  EXPECT_EQ(files_in(sharded), files);
  EXPECT_EQ(files_in(whole), files);
  for (const char* name : {"/weights.safetensors", "/optimizer.safetensors", "/tokens.safetensors"})
    EXPECT_EQ(read_all(sharded + name), read_all(whole + name)) << name;  // to the last bit
  for (const char* name : {"/gradients.safetensors", "/updated.safetensors"}) {
    EXPECT_EQ(header_of(sharded + name), header_of(sharded + "/weights.safetensors")) << name;
    EXPECT_EQ(header_of(whole + name), header_of(sharded + "/weights.safetensors")) << name;
  }
  const nlohmann::json weights = header_of(sharded + "/weights.safetensors");
  EXPECT_EQ(weights["layer3.down"]["shape"], nlohmann::json({256, 512}));
  EXPECT_EQ(weights["final_norm.weight"]["shape"], nlohmann::json({256}));
  const auto facts = nlohmann::json::parse(read_all(sharded + "/step.json"));
  EXPECT_EQ(facts["ranks"], 8);
  EXPECT_EQ(facts["model"]["kv_heads"], 4);
  EXPECT_EQ(facts["model"]["gated"], true);
  EXPECT_NEAR(facts["loss"].get<double>(), nlohmann::json::parse(read_all(whole + "/step.json"))["loss"].get<double>(), 1e-5);
  EXPECT_EQ(header_of(sharded + "/tokens.safetensors")["labels"]["shape"], nlohmann::json({8, 128}));
}

TEST(ExecuteDump, HasConvolutionsWithTheirTaps) {
  const TemporaryFolder folder;
  const CommandResult run = dump(folder / "d", {"--set", "model.layer_types=M-M-", "--set", "model.mamba.heads=8"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json weights = header_of(folder / "d/weights.safetensors");
  EXPECT_EQ(weights["layer0.mamba_conv_x.taps"]["shape"], nlohmann::json({8 * 64, 4 + 1}));  // the last column is the bias
  EXPECT_EQ(weights["layer0.mamba_a_log.weight"]["shape"], nlohmann::json({8}));
}

TEST(ExecuteDump, IsOfOneStepOnTheHost) {
  const TemporaryFolder folder;
  expect_refusal(run_tandem({"execute", tiny, "--backend", "cuda", "--dump", folder / "d"}), 2, {"--dump", "--backend host"});
  expect_refusal(dump(folder / "d", {"--set", "parallelism.zero=0", "--set", "training.sync_every=2"}), 2,
                 {"--dump", "training.sync_every 1"});
  EXPECT_TRUE(folder.empty());
}

TEST(ExecuteDump, FindsAFolderThatCannotBeWrittenBeforeTheStep) {
  expect_refusal(dump("/no/such/folder/out"), 1, {"cannot write '/no/such/folder/out': No such file or directory"});
  expect_refusal(dump("/dev/null"), 1, {"cannot write '/dev/null': Not a directory"});
  const TemporaryFolder folder;
  std::ofstream(folder / "mine") << "text";
  expect_refusal(dump(folder.path()), 1, {"it holds something; expected a new folder, or an empty one"});
  EXPECT_EQ(files_in(folder.path()), std::set<std::string>{"mine"});
}

}  // namespace
}  // namespace tandem::cli::execute_dump_test
