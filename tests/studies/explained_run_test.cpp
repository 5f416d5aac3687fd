// A predicted run taken apart: its times add up to the step, its doubts to the interval, and the nearest run is the nearest.
#include "studies/validate/explained_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "runtime/base/input_error.h"
#include "studies/validate/plausible.h"
#include "tests/studies/runs_table.h"

namespace tandem::studies::explained_run_test {
namespace {

using testing::HasSubstr;

std::vector<RunRow> rows_of(const std::vector<RunCells>& runs) { return load_runs(RunsTable(runs).file()).rows; }

ExplainedRun explained(const std::vector<RunCells>& runs, const std::string& id) { return explain_run(rows_of(runs), id, 2); }

TEST(ExplainedRun, TimesAddUpToTheStepAndDoubtsToTheInterval) {
  for (const RunCells& changes :
       {RunCells{}, RunCells{{"pp", "2"}, {"tp", "2"}, {"sp", "1"}}, RunCells{{"experts", "8"}, {"top_k", "2"}, {"ep", "4"}}}) {
    const ExplainedRun run = explained({tiny_run(changes)}, "a");
    ASSERT_TRUE(run.row.prediction);
    const Prediction& prediction = *run.row.prediction;
    Seconds sum = 0;
    std::map<ErrorPart, double> off_by;
    for (const ExplainedTime& time : run.times) {
      sum += time.time;
      if (time.part) off_by[*time.part] += time.off_by;
    }
    EXPECT_NEAR(sum, prediction.typical.step.step_time, 1e-9 * sum);
    double squares = 0;
    for (const ErrorPart part : {ErrorPart::products, ErrorPart::attention, ErrorPart::other_kernels, ErrorPart::collectives})
      squares += off_by[part] * off_by[part];
    for (const ErrorPart part : {ErrorPart::framework, ErrorPart::unknown}) {
      const double alone = nine_in_ten * prediction.interval.parts[static_cast<std::size_t>(part)];
      squares += alone * alone;
    }
    EXPECT_NEAR(std::exp(std::sqrt(squares)), prediction.interval.high / prediction.step_time, 1e-9);
  }
}

TEST(ExplainedRun, TheNearestRunIsThatOfLeastDistance) {
  const ExplainedRun run = explained(
      {tiny_run({{"id", "far"}, {"n_gpus", "64"}, {"step_time_s", "0.02"}}),
       tiny_run({{"id", "unmeasured"}, {"step_time_s", ""}}), tiny_run({{"id", "this"}}),
       tiny_run({{"id", "no scenario"}, {"tp", "3"}}), tiny_run({{"id", "near"}, {"n_gpus", "16"}, {"step_time_s", "0.02"}})},
      "this");
  ASSERT_TRUE(run.nearest);
  EXPECT_EQ(run.nearest->row.id, "near");
  ASSERT_FALSE(run.nearest->differences.empty());
  EXPECT_EQ(run.nearest->differences.front().what, "gpus");
  EXPECT_EQ(run.nearest->differences.front().here, "8");
  EXPECT_EQ(run.nearest->differences.front().there, "16");
  EXPECT_DOUBLE_EQ(run.nearest->differences.front().distance, 1);
  EXPECT_DOUBLE_EQ(run.measured_ratio().value(), 0.01 / 0.02);
  EXPECT_DOUBLE_EQ(run.predicted_ratio().value() / run.measured_ratio().value(),
                   (1 + *run.row.error()) / (1 + *run.nearest->row.error()));
  EXPECT_DOUBLE_EQ(run.step_time_like_nearest().value(), 0.02 * run.predicted_ratio().value());
}

TEST(ExplainedRun, ARunIsNoDistanceFromItsLike) {
  const ExplainedRun run = explained({tiny_run(), tiny_run({{"id", "b"}, {"source", "another"}})}, "a");
  ASSERT_TRUE(run.nearest);
  EXPECT_TRUE(run.nearest->differences.empty());
  EXPECT_DOUBLE_EQ(run.predicted_ratio().value(), 1);
}

TEST(ExplainedRun, DistancesAreSymmetric) {
  const std::vector<RunRow> rows = rows_of({tiny_run(), tiny_run({{"id", "b"}, {"gpu", "a100-80gb"}, {"precision", "fp16"}}),
                                            tiny_run({{"id", "c"}, {"tp", "4"}, {"sequence", "2048"}, {"recompute", "full"}})});
  std::vector<Scenario> scenarios;
  for (const RunRow& row : rows) scenarios.push_back(plausible_runs(row).front().run.scenario);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const PlacedRun a{&rows[i], &scenarios[i]}, b{&rows[j], &scenarios[j]};
      EXPECT_DOUBLE_EQ(distance_of(differences_of(a, b)), distance_of(differences_of(b, a)));
      EXPECT_EQ(distance_of(differences_of(a, b)) == 0, i == j);
    }
}

TEST(ExplainedRun, AnIdThatIsNotThereIsRefusedWithTheNearest) {
  try {
    explained({tiny_run({{"id", "first"}})}, "fist");
    FAIL() << "expected an error";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no row has the id `fist`"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean `first`?"));
  }
}

}  // namespace
}  // namespace tandem::studies::explained_run_test
