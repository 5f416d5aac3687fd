#include "traces/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/runtime/temporary_folder.h"
#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"

namespace tandem::traces::formats_test {
namespace {

std::string_view format_of(std::string_view path) {
  for (const TraceFormat& format : trace_formats())
    if (format.takes(path)) return format.name;
  return "none";
}

TEST(TraceFormats, ThePathChooses) {
  EXPECT_EQ(format_of("step.json"), "Chrome");
  EXPECT_EQ(format_of("ranks/"), "Kineto");
  EXPECT_EQ(format_of("ranks.json/"), "Kineto");
  for (const char* other : {"step.pftrace", "step", "step.json.gz", ""}) EXPECT_EQ(format_of(other), "Perfetto") << other;
}

TEST(TraceFormats, HelpNamesEachWithItsPaths) {
  const std::string text = trace_formats_text();
  for (const TraceFormat& format : trace_formats())
    EXPECT_THAT(text, testing::HasSubstr(std::string(format.paths) + " for " + std::string(format.name)));
}

TEST(TraceFormats, EachWritesWhatItsNameSays) {
  const Sample sample = pipeline_sample(2, 1, 2);
  const std::vector<TraceSource> sources{{"simulated", &sample.dag, &sample.timeline}};
  const TemporaryFolder folder;
  for (const char* name : {"step.json", "step.pftrace", "ranks/"}) EXPECT_TRUE(open_trace(folder / name)->write(sources).empty());
  EXPECT_TRUE(nlohmann::json::parse(read_all(folder / "step.json")).contains("traceEvents"));
  EXPECT_EQ(slices_of(parse_perfetto(read_all(folder / "step.pftrace"))).size(), sample.dag.tasks.size());
  EXPECT_TRUE(std::filesystem::exists(folder / "ranks/rank0.json"));
}

// Nothing is left of what was opened and not written.
TEST(TraceFormats, OpenedAndNotWrittenLeavesNothing) {
  const TemporaryFolder folder;
  for (const char* name : {"step.json", "step.pftrace", "ranks/"}) open_trace(folder / name);
  EXPECT_TRUE(folder.empty());
}

}  // namespace
}  // namespace tandem::traces::formats_test
