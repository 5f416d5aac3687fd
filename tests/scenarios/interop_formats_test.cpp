#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "scenarios/interop/export_scenario.h"
#include "scenarios/interop/formats.h"
#include "scenarios/interop/import_scenario.h"
#include "scenarios/reading/load.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::scenarios::interop_formats_test {
namespace {

const std::string file = TANDEM_SOURCE_DIR "/scenarios/llama3-8b-64.yaml";

TEST(InteropFormats, AreFoundByTheirNames) {
  for (const Exporter& exporter : exporters()) EXPECT_EQ(find_exporter(exporter.name), &exporter);
  for (const Importer& importer : importers()) EXPECT_EQ(find_importer(importer.name), &importer);
  EXPECT_EQ(find_exporter("megatrom"), nullptr);
  EXPECT_EQ(find_importer("nccl"), nullptr);
}

// A folder holds a file of each exporter.
TEST(InteropFormats, ExportersWriteFilesOfDifferentNames) {
  std::set<std::string_view> files;
  for (const Exporter& exporter : exporters()) EXPECT_TRUE(files.insert(exporter.file).second) << exporter.file;
}

TEST(InteropFormats, WhatIsExportedIsImportedAsTheSameSizes) {
  const TemporaryFolder folder;
  const Scenario original = load_scenario(file, {});
  for (const Importer& importer : importers()) {
    const Exporter* const exporter = find_exporter(importer.name);
    if (exporter == nullptr) continue;  // such as hf, which says nothing of parallelism
    const std::string written = folder / std::string(exporter->file);
    std::ofstream(written) << export_scenario(file, {}, *exporter).text;
    std::vector<std::string> overrides;
    if (importer.name == "deepspeed") overrides = {"model=llama3-8b"};  // which its file does not have
    const ImportedScenario imported =
        import_scenario(written, importer, {.cluster = "dgx-h100", .gpus = 64, .overrides = overrides});
    EXPECT_THAT(imported.ignored, testing::IsEmpty());
    const Scenario read = parse_scenario(imported.yaml, "back.yaml", {});
    EXPECT_EQ(read.parallelism.tp, original.parallelism.tp);
    EXPECT_EQ(read.parallelism.dp, original.parallelism.dp);
    EXPECT_EQ(read.training.global_batch, original.training.global_batch);
    EXPECT_EQ(read.model.layers, original.model.layers);
  }
}

TEST(InteropFormats, OverridesGoBeforeTheExport) {
  const Exported exported = export_scenario(file, {"training.sequence=4096"}, *find_exporter("megatron"));
  EXPECT_THAT(exported.text, testing::HasSubstr("\n--seq-length 4096\n"));
}

}  // namespace
}  // namespace tandem::scenarios::interop_formats_test
