// A preset is a file: what is in the folders is what ships, each file stands by itself, and `as` names another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "scenarios/reading/document.h"
#include "scenarios/reading/embedded_files.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/run_defaults.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::preset_files_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;
const fs::path presets_folder = fs::path(TANDEM_SOURCE_DIR) / "scenarios/presets";

struct PresetFolder {
  PresetKind kind;
  const char* name;   ///< below scenarios/presets
  const char* field;  ///< of a scenario that names such a preset
};
constexpr PresetFolder folders[] = {{PresetKind::model, "models", "model"},
                                    {PresetKind::cluster, "clusters", "cluster.preset"},
                                    {PresetKind::gpu, "gpus", "cluster.gpu"},
                                    {PresetKind::framework, "frameworks", "training.framework"},
                                    {PresetKind::campaign, "campaigns", "campaign"}};

YamlNode named(const std::string& name) { return make_scalar(name, {.file = "test"}); }

class PresetFiles : public testing::Test {
 protected:
  TemporaryFolder folder_;

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name, std::ios::binary) << text; }

  YamlNode document(const std::vector<std::string>& overrides) {
    return parse_document(base_text(), folder_ / "s.yaml", overrides);
  }
  Scenario scenario(const std::vector<std::string>& overrides) {
    return parse_scenario(base_text(), folder_ / "s.yaml", overrides);
  }
  std::string refusal(const std::vector<std::string>& overrides) {
    try {
      scenario(overrides);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(PresetFiles, WhatShipsIsWhatIsInTheFolders) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(presets_folder))
    if (entry.path().extension() == ".yaml")
      files.push_back("scenarios/presets/" + entry.path().lexically_relative(presets_folder).string());
  std::vector<std::string> embedded;
  for (const EmbeddedFile& file : embedded_files()) embedded.emplace_back(file.path);
  std::ranges::sort(files);
  std::ranges::sort(embedded);
  EXPECT_EQ(embedded, files);
  for (const PresetFolder& folder : folders) {
    std::vector<std::string> stems;
    for (const auto& entry : fs::directory_iterator(presets_folder / folder.name)) stems.push_back(entry.path().stem());
    std::ranges::sort(stems);
    EXPECT_EQ(preset_names(folder.kind), stems);
  }
}

TEST_F(PresetFiles, EachIsTheSameFromItsFileAlone) {
  for (const PresetFolder& folder : folders) {
    if (folder.kind == PresetKind::campaign) continue;  // not a part of every scenario, see campaign_spec_test.cpp
    for (const std::string& name : preset_names(folder.kind)) {
      fs::copy_file(presets_folder / folder.name / (name + ".yaml"), folder_ / (name + ".yaml"));
      const std::string field = std::string(folder.field) + "=";
      EXPECT_EQ(to_yaml(document({field + "./" + name + ".yaml"})), to_yaml(document({field + name}))) << folder.name << name;
      fs::remove(folder_ / (name + ".yaml"));
    }
  }
}

TEST_F(PresetFiles, EveryGpuNamesTheClusterThatIsSoldWithIt) {
  for (const std::string& name : preset_names(PresetKind::gpu)) {
    const std::string pod = pod_of_gpu(named(name), "").text;
    EXPECT_THAT(preset_names(PresetKind::cluster), Contains(pod)) << name;
    const Device sold = scenario({"cluster.preset=" + pod, "cluster.gpus=8", "parallelism.dp=1"}).cluster.gpu;
    EXPECT_EQ(sold.architecture, scenario({"cluster.gpu=" + name}).cluster.gpu.architecture) << name;
  }
  EXPECT_THAT(refusal({"cluster.gpu.pod=dgx-h100"}), HasSubstr("cluster.gpu has no field `pod`"));
}

TEST_F(PresetFiles, EveryFrameworkStatesWhatItsRunsDo) {
  for (const std::string& name : preset_names(PresetKind::framework))
    EXPECT_TRUE(read_framework_runs(preset_fields(PresetKind::framework, named(name), ""))) << name;
  const FrameworkRuns nemo = framework_runs(named("nemo"), "");
  EXPECT_THAT(nemo.recompute_to_fit, ElementsAre("selective", "full"));
  EXPECT_TRUE(nemo.experts_split_like_tp);  // from megatron-core
  EXPECT_EQ(nemo.low_precision_grad_dtype, "bf16");
  EXPECT_EQ(framework_runs(named("torchtitan"), "").low_precision_grad_dtype, "");
  EXPECT_EQ(nemo.rack_dispatcher, "nccl");
  EXPECT_EQ(framework_runs(named("megatron-core"), "").rack_dispatcher, "hybridep");
  EXPECT_FALSE(nemo.compiles);
  EXPECT_TRUE(framework_runs(named("torchtitan"), "").compiles);
}

TEST_F(PresetFiles, AFrameworkThatSaysNothingOfRunsIsTakenForTheGenericOne) {
  write("house.yaml", "issue_us: {forward: 9}\n");
  const FrameworkRuns generic = framework_runs(named("generic"), "");
  EXPECT_THAT(generic.zero, ElementsAre(1, 0));
  for (const char* name : {"./house.yaml", "unheard-of", ""}) {
    const FrameworkRuns runs = framework_runs(named(name), folder_.path());
    EXPECT_EQ(runs.zero, generic.zero) << name;
    EXPECT_EQ(runs.sp, generic.sp) << name;
    EXPECT_EQ(runs.interleaves, generic.interleaves) << name;
  }
}

TEST_F(PresetFiles, WhatTheySayOfRunsIsCheckedInAnyScenario) {
  write("house.yaml", "runs: {zero: [2], sp: [true], recompute: [none],\n recompute_to_fitt: [full]}\n");
  EXPECT_THAT(refusal({"training.framework=house.yaml"}),
              AllOf(HasSubstr("house.yaml:2:2: runs has no field `recompute_to_fitt`"), HasSubstr("`recompute_to_fit`")));
  write("house.yaml", "runs: {zero: [2], sp: [true], recompute: [sometimes]}\n");
  EXPECT_THAT(refusal({"training.framework=house.yaml"}), HasSubstr("house.yaml:1:43: runs.recompute cannot be `sometimes`"));
  write("house.yaml", "runs: {zero: [2], sp: [perhaps], recompute: [none]}\n");
  EXPECT_THAT(refusal({"training.framework=house.yaml"}),
              HasSubstr("house.yaml:1:24: runs.sp is `perhaps`, expected true or false"));
  write("house.yaml", "runs: {zero: [], sp: [true], recompute: [none]}\n");
  EXPECT_THAT(refusal({"training.framework=house.yaml"}), HasSubstr("house.yaml:1:14: runs.zero is empty"));
  write("house.yaml", "runs: {sp: [true], recompute: [none]}\n");
  EXPECT_THAT(refusal({"training.framework=house.yaml"}), HasSubstr("house.yaml:1:7: runs.zero is nothing, expected a list"));
  write("mine.yaml", "as: h100-sxm-80gb\npod: [dgx-h100]\n");
  EXPECT_THAT(refusal({"cluster.gpu=mine.yaml"}), HasSubstr("mine.yaml:2:6: pod is a list"));
}

TEST_F(PresetFiles, AsFillsInFromAPresetOrAFileBeside) {
  fs::create_directory(folder_ / "lab");
  write("lab/base.yaml", "as: h100-sxm-80gb\nmemory_GiB: 120\nefficiency: {memory: 0.5}\npod: ./rack.yaml\n");
  write("lab/mine.yaml", "as: ./base.yaml\nmemory_GiB: 130\n");
  const Device mine = scenario({"cluster.gpu=lab/mine.yaml"}).cluster.gpu;
  const Device h100 = scenario({"cluster.gpu=h100-sxm-80gb"}).cluster.gpu;
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.memory, 130LL << 30);
  EXPECT_EQ(mine.efficiency.memory, 0.5);
  EXPECT_EQ(mine.efficiency.launch, h100.efficiency.launch);
  EXPECT_EQ(mine.peak, h100.peak);
  EXPECT_EQ(pod_of_gpu(named("lab/mine.yaml"), folder_.path()).text, folder_ / "lab/rack.yaml");

  write("lab/rack.yaml", "as: dgx-h100\ngpu: lab/mine.yaml\nnic_gbps: 800\n");
  const ClusterSpec rack = scenario({"cluster.preset=lab/rack.yaml"}).cluster;
  EXPECT_EQ(rack.gpu.memory, mine.memory);
  EXPECT_EQ(rack.nic_gbps, 800);
  EXPECT_EQ(rack.fabric.leaf_ports, 32);
}

// The file's num_layers goes before the preset's layers, instead of standing beside them.
TEST_F(PresetFiles, AsUnderstandsLongNames) {
  write("mine.yaml", "as: llama3-8b\nnum_layers: 8\n");
  const ModelSpec model = scenario({"model=mine.yaml"}).model;
  EXPECT_EQ(model.layers, 8);
  EXPECT_EQ(model.hidden, 4096);
}

TEST_F(PresetFiles, AsThatLeadsNowhereIsRefused) {
  write("mine.yaml", "memory_GiB: 80\nas: h100-sxm-80g\n");
  EXPECT_THAT(refusal({"cluster.gpu=mine.yaml"}),
              HasSubstr("mine.yaml:2:5: there is no GPU preset `h100-sxm-80g`; did you mean `h100-sxm-80gb`?"));
  write("mine.yaml", "as: [h100-sxm-80gb]\n");
  EXPECT_THAT(refusal({"cluster.gpu=mine.yaml"}), HasSubstr("mine.yaml:1:5: as is a list, expected the name of a GPU preset"));
  write("mine.yaml", "as: ./mine.yaml\n");
  EXPECT_THAT(refusal({"cluster.gpu=mine.yaml"}), HasSubstr("mine.yaml:1:5: `as` leads from file to file without end"));
}

}  // namespace
}  // namespace tandem::scenarios::preset_files_test
