// A scenario of a config.json, or of a folder with one and the index of its weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/base/input_error.h"
#include "scenarios/interop/import_scenario.h"
#include "scenarios/reading/load.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::scenarios::hf_import_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Embedding and head of 4096 x 512; in each of 2 layers attention of 4 x 512 x 512, an MLP of 3 x 512 x 1024, two norms; a norm.
constexpr std::int64_t parameters = 2 * 4096 * 512 + 2 * (4 * 512 * 512 + 3 * 512 * 1024 + 2 * 512) + 512;

class HfImport : public testing::Test {
 protected:
  HfImport() { write_config("\"torch_dtype\": \"bfloat16\""); }

  void write_config(const std::string& more) {
    std::ofstream(folder_ / "config.json")
        << "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 512, \"num_attention_heads\": 8,\n"
           "\"intermediate_size\": 1024, \"vocab_size\": 4096, \"max_position_embeddings\": 2048, "
        << more << "}";
  }
  void write_index(const std::string& text) { std::ofstream(folder_ / "model.safetensors.index.json") << text; }
  void write_size(std::int64_t bytes) {
    write_index("{\"metadata\": {\"total_size\": " + std::to_string(bytes) + "}, \"weight_map\": {\"a\": \"b\"}}");
  }

  ImportedScenario import(std::int64_t gpus, const std::vector<std::string>& overrides = {}) const {
    return import_scenario(folder_.path().string(), *find_importer("hf"),
                           {.cluster = "dgx-h100", .gpus = gpus, .overrides = overrides});
  }
  Scenario read(std::int64_t gpus, const std::vector<std::string>& overrides = {}) const {
    return parse_scenario(import(gpus, overrides).yaml, "back.yaml", {});
  }

  TemporaryFolder folder_;
};

TEST_F(HfImport, AFolderIsAScenario) {
  const Scenario scenario = read(0);
  EXPECT_EQ(scenario.name, folder_.path().filename().string());
  EXPECT_EQ(parameter_count(scenario.model), parameters);
  EXPECT_EQ(scenario.parallelism.dp, 8);
  EXPECT_EQ(scenario.cluster.gpus, 8);
  EXPECT_EQ(scenario.training.sequence, 2048);  // no more positions
  EXPECT_EQ(scenario.training.global_batch, 8);
  EXPECT_THAT(import(0).ignored, IsEmpty());
  EXPECT_THAT(import(0).warnings, IsEmpty());
}

TEST_F(HfImport, TheRestIsSaidByOptions) {
  EXPECT_EQ(read(0, {"parallelism.tp=4", "parallelism.pp=2"}).cluster.gpus, 64);
  const Scenario scenario = read(32, {"parallelism.tp=4", "training.sequence=1024", "model.layers=4"});
  EXPECT_EQ(scenario.parallelism.dp, 8);
  EXPECT_EQ(scenario.training.global_batch, 32);
  EXPECT_EQ(scenario.training.sequence, 1024);
  EXPECT_EQ(scenario.model.layers, 4);
}

TEST_F(HfImport, WeightsOfAnotherSizeAreSaid) {
  write_size(2 * parameters);
  EXPECT_THAT(import(8).warnings, IsEmpty());
  write_size(2 * parameters + 2 * parameters / 101);
  EXPECT_THAT(import(8).warnings, IsEmpty());
  write_size(2 * parameters + 2 * parameters / 20);
  EXPECT_THAT(import(8).warnings,
              ElementsAre(AllOf(HasSubstr("model.safetensors.index.json: the weights take 19,823,462 bytes, +5.0 %"),
                                HasSubstr("of the model's 9,439,744 parameters with 2 bytes each"))));
  write_config("\"dtype\": \"float32\"");
  EXPECT_THAT(import(8).warnings, ElementsAre(HasSubstr("-47.5 %")));
  write_config("\"torch_dtype\": \"bfloat16\", \"quantization_config\": {\"quant_method\": \"fp8\"}");
  EXPECT_THAT(import(8).warnings, ElementsAre(HasSubstr("quantization_config"), HasSubstr("+110.0 % off the 9,439,744 of")));
  write_config("\"torch_dtype\": \"bfloat16\", \"quantization_config\": {\"quant_method\": \"mxfp4\"}");
  EXPECT_THAT(import(8).warnings, ElementsAre(HasSubstr("quantization_config")));
}

TEST_F(HfImport, ASingleFileOfWeightsIsMeasured) {
  const std::string header = "{\"__metadata__\":{}}";
  const auto write = [&](std::int64_t bytes, char length) {
    std::ofstream file(folder_ / "model.safetensors", std::ios::binary);
    file << length << std::string(7, '\0') << header;
    file.seekp(static_cast<std::streamoff>(8 + header.size()) + bytes - 1).put(0);
  };
  write(2 * parameters, static_cast<char>(header.size()));
  EXPECT_THAT(import(8).warnings, IsEmpty());
  write(3 * parameters, static_cast<char>(header.size()));
  EXPECT_THAT(import(8).warnings, ElementsAre(HasSubstr("model.safetensors: the weights take 28,319,232 bytes, +50.0 %")));
  write(1, 127);
  EXPECT_THROW(import(8), InputError);
}

TEST_F(HfImport, AnIndexWithoutASizeIsRefused) {
  for (const char* text : {"{", "[]", "{\"metadata\": 3}", "{\"metadata\": {\"total_size\": \"4\"}}", "{\"weight_map\": {}}"}) {
    write_index(text);
    EXPECT_THROW(import(8), InputError) << text;
  }
}

TEST_F(HfImport, OnlyAConfigHasAFolder) {
  EXPECT_THROW(
      import_scenario(folder_.path().string(), *find_importer("megatron"), {.cluster = "dgx-h100", .gpus = 8, .overrides = {}}),
      InputError);
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_THROW(import(8), InputError);
}

}  // namespace
}  // namespace tandem::scenarios::hf_import_test
