// Runs joined with what was predicted of them before.
#include "studies/validate/scored_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "studies/validate/ratios.h"
#include "tests/studies/runs_table.h"

namespace tandem::studies::scored_runs_test {
namespace {

std::string written(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

constexpr const char* header = "error,id,predicted_step_time_s,measured_step_time_s\n";

TEST(ScoredRuns, AreTheRunsThatHaveBothTimesInTheRunsOrder) {
  const RunsTable runs({tiny_run({{"id", "a"}, {"n_gpus", "8"}, {"dp", "8"}, {"core", "1"}}), tiny_run({{"id", "b"}}),
                        tiny_run({{"id", "c"}}),
                        tiny_run({{"id", "d"}, {"n_gpus", "16"}, {"dp", "16"}, {"global_batch", "128"}, {"core", "0"}})});
  const ScoredRuns joined =
      join_scored_runs(runs.file(), written(runs / "scored.csv", std::string(header) + "0.5,d,3,2\n,b,,2\n0,a,1,1\n"));
  ASSERT_EQ(joined.rows.size(), 2U);
  ASSERT_EQ(joined.validated.size(), 2U);
  EXPECT_EQ(joined.rows[1].text("id"), "d");
  EXPECT_EQ(joined.validated[0].id, "a");
  EXPECT_TRUE(joined.validated[0].core);
  EXPECT_FALSE(joined.validated[1].core);
  EXPECT_DOUBLE_EQ(*joined.validated[1].error(), 0.5);
  // of which the ratios are those of the runs themselves: 16 GPUs take 2 where 8 take 1, predicted 3
  const std::vector<Ratio> ratios = ratios_of(joined.rows, joined.validated);
  ASSERT_EQ(ratios.size(), 1U);
  EXPECT_EQ(ratios[0].axis, "scaling");
  EXPECT_DOUBLE_EQ(ratios[0].error(), 0.5);
}

TEST(ScoredRuns, HaveExpertsByTheirColumnsOrTheirPreset) {
  const RunsTable runs({tiny_run({{"id", "a"}, {"preset", "nemotron-3-nano"}}), tiny_run({{"id", "b"}, {"preset", "llama3-8b"}}),
                        tiny_run({{"id", "c"}, {"experts", "8"}, {"top_k", "2"}, {"moe_ffn", "64"}})});
  const ScoredRuns joined =
      join_scored_runs(runs.file(), written(runs / "scored.csv", std::string(header) + "0,a,1,1\n0,b,1,1\n0,c,1,1\n"));
  ASSERT_EQ(joined.validated.size(), 3U);
  EXPECT_TRUE(joined.validated[0].moe);
  EXPECT_FALSE(joined.validated[1].moe);
  EXPECT_TRUE(joined.validated[2].moe);
}

TEST(ScoredRuns, ATableOfOtherRunsIsRefused) {
  const RunsTable runs({tiny_run({{"id", "a"}})});
  const auto refusal = [&](const std::string& text) {
    try {
      join_scored_runs(runs.file(), written(runs / "scored.csv", text));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(std::string(header) + "0,a,1,1\n0,z,1,1\n"),
              testing::AllOf(testing::HasSubstr("scored.csv:3:3"), testing::HasSubstr("`z` is no run of")));
  for (const char* time : {"soon", "1e999", "-1", "nan", "1s"})
    EXPECT_THAT(refusal(std::string(header) + "0,a,1," + time + "\n"), testing::HasSubstr("scored.csv:2:7: ")) << time;
  EXPECT_THAT(refusal("id,error\na,0\n"), testing::HasSubstr("no column `measured_step_time_s`"));
}

}  // namespace
}  // namespace tandem::studies::scored_runs_test
