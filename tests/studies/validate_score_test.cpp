// Scores of predictions, against values worked out by hand.
#include <gtest/gtest.h>

#include <random>

#include "studies/validate/memory_score.h"
#include "studies/validate/ratios.h"
#include "studies/validate/strata.h"
#include "tests/studies/runs_table.h"

namespace tandem::studies::validate_score_test {
namespace {

TEST(WeightedQuantile, OfEqualWeightsIsTheUsualMedian) {
  EXPECT_DOUBLE_EQ(weighted_quantile({{3}, {1}, {2}}, 0.5), 2);
  EXPECT_DOUBLE_EQ(weighted_quantile({{4}, {1}, {2}, {3}}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(weighted_quantile({{7}}, 0.9), 7);
}

TEST(WeightedQuantile, AValueOfTwiceTheWeightStandsForTwoOfTheSame) {
  // At most half a weight away: the pair's middles are joined into one.
  EXPECT_DOUBLE_EQ(weighted_quantile({{1, 1}, {2, 2}, {3, 1}}, 0.5), weighted_quantile({{1}, {2}, {2}, {3}}, 0.5));
  EXPECT_DOUBLE_EQ(weighted_quantile({{0, 1}, {10, 3}}, 0.5), 10 * (0.5 - 0.125) / (0.625 - 0.125));
}

TEST(WeightedQuantile, RisesWithTheQuantileAndStaysInside) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(0.01, 1);
  for (int round = 0; round < 100; ++round) {
    std::vector<WeightedValue> values(1 + random() % 9);
    double least = 1, most = 0;
    for (WeightedValue& value : values) {
      value = {any(random), any(random)};
      least = std::min(least, value.value);
      most = std::max(most, value.value);
    }
    double before = least;
    for (double quantile = 0; quantile <= 1; quantile += 0.05) {
      const double at = weighted_quantile(values, quantile);
      EXPECT_GE(at, before);
      EXPECT_LE(at, most);
      before = at;
    }
  }
}

TEST(Score, EverySourceWeighsTheSame) {
  // A thousand rows of one source that are 10 % slow do not outvote one row each of two others.
  std::vector<ScoredError> errors(1000, {"large", 0.1, false});
  errors.push_back({"b", -0.2, true});
  errors.push_back({"c", 0.4, true});
  const Score score = score_of(errors);
  EXPECT_EQ(score.rows, 1002U);
  EXPECT_EQ(score.sources, 3U);
  EXPECT_NEAR(score.mean, (0.1 + 0.2 + 0.4) / 3, 1e-12);
  EXPECT_NEAR(score.coverage, 2.0 / 3, 1e-12);
  EXPECT_NEAR(score.median, 0.2, 1e-12);
  EXPECT_NEAR(score.bias, 0.1, 1e-12);
  EXPECT_GT(score.p90, 0.2);
}

TEST(Score, OfNothingIsNothing) { EXPECT_EQ(score_of({}).rows, 0U); }

ValidatedRow row_of(const std::string& id, const std::string& source, double measured, double predicted) {
  ValidatedRow row;
  row.id = id;
  row.source = source;
  row.gpu = "g";
  row.measured = measured;
  row.prediction.emplace();
  row.prediction->step_time = predicted;
  row.prediction->interval = {predicted, predicted};
  return row;
}

const Stratum* find(const std::vector<Stratum>& strata, const std::string& set, const std::string& name) {
  for (const Stratum& stratum : strata)
    if (stratum.set == set && stratum.name == name) return &stratum;
  return nullptr;
}

TEST(Strata, CountOnlyRowsWithAnError) {
  std::vector<ValidatedRow> rows = {row_of("1", "a", 1, 1.1), row_of("2", "a", 1, 0.8), row_of("3", "b", 1, 1)};
  rows[1].moe = true;
  rows[2].measured.reset();
  const auto strata = strata_of(rows);
  EXPECT_EQ(find(strata, "all", "all")->score.rows, 2U);
  EXPECT_NEAR(find(strata, "all", "dense")->score.median, 0.1, 1e-12);
  EXPECT_NEAR(find(strata, "all", "g moe")->score.bias, -0.2, 1e-12);
  EXPECT_EQ(find(strata, "all", "b"), nullptr);
  EXPECT_EQ(find(strata, "core", "all"), nullptr);
  rows[0].core = true;
  EXPECT_EQ(find(strata_of(rows), "core", "all")->score.rows, 1U);
}

TEST(Strata, TheIntervalCountsItsEnds) {
  std::vector<ValidatedRow> rows = {row_of("1", "a", 1, 1.1), row_of("2", "b", 2, 1)};
  rows[0].prediction->interval = {1, 1.2};
  rows[1].prediction->interval = {0.5, 1.9};
  EXPECT_NEAR(find(strata_of(rows), "all", "all")->score.coverage, 0.5, 1e-12);
}

TEST(MemoryScore, TellsWhatFitsFromWhatDoesNot) {
  std::vector<ValidatedRow> rows = {row_of("1", "a", 1, 1), row_of("2", "a", 1, 1), row_of("3", "a", 1, 1)};
  rows[0].memory = {.peaks = {{MemoryFigure::tensors, 100},
                              {MemoryFigure::allocated, 100},
                              {MemoryFigure::reserved, 100},
                              {MemoryFigure::device, 100}},
                    .out_of_memory = false};
  rows[0].prediction->typical.step.stages = {{.activations = 70}, {.activations = 80}};
  rows[0].prediction->typical.step.device_memory = {.allocated = 85, .reserved = 120, .communicators = 10, .context = 2};
  rows[1].prediction->fits = false;
  rows[2].measured.reset();
  rows[2].memory.out_of_memory = true;
  const MemoryScore score = memory_score_of(rows);
  ASSERT_EQ(score.rows.size(), 4U);
  EXPECT_NEAR(score.rows[0].error(), -0.2, 1e-12);
  EXPECT_NEAR(score.rows[1].error(), -0.15, 1e-12);
  EXPECT_NEAR(score.rows[2].error(), 0.2, 1e-12);
  EXPECT_NEAR(score.rows[3].error(), 0.32, 1e-12);
  EXPECT_NEAR(score.by_figure[static_cast<std::size_t>(MemoryFigure::device)].bias, 0.32, 1e-12);
  EXPECT_EQ(score.by_figure[static_cast<std::size_t>(MemoryFigure::device)].rows, 1U);
  EXPECT_EQ(score.fits.ran_fits, 1U);
  EXPECT_EQ(score.fits.ran_exceeds, 1U);
  EXPECT_EQ(score.fits.oom_fits, 1U);
  EXPECT_EQ(score.fits.oom_exceeds, 0U);
}

TEST(Ratios, PairRunsThatDifferInOneThing) {
  const TemporaryFolder folder;
  const RunsTable table({tiny_run({{"id", "a"}, {"n_gpus", "8"}, {"dp", "8"}}),
                         tiny_run({{"id", "b"}, {"n_gpus", "16"}, {"dp", "16"}, {"global_batch", "128"}}),
                         tiny_run({{"id", "c"}, {"n_gpus", "16"}, {"dp", "8"}, {"tp", "2"}, {"global_batch", "128"}}),
                         tiny_run({{"id", "d"}, {"n_gpus", "32"}, {"dp", "32"}, {"global_batch", "256"}}),
                         tiny_run({{"id", "e"}, {"n_gpus", "32"}, {"dp", "32"}, {"global_batch", "256"}, {"source", "theirs"}}),
                         tiny_run({{"id", "f"}, {"n_gpus", "8"}, {"dp", "8"}, {"recompute", "full"}})});
  const RunsFile file = load_runs(table.file());
  const std::vector<ValidatedRow> rows = {row_of("a", "s", 1, 1),    row_of("b", "s", 1.25, 1), row_of("c", "s", 2, 2),
                                          row_of("d", "s", 1.25, 2), row_of("e", "t", 1, 1),    row_of("f", "s", 1.5, 1.5)};
  const auto ratios = ratios_of(file.rows, rows);
  std::vector<std::string> found;
  for (const Ratio& ratio : ratios) found.push_back(ratio.axis + " " + ratio.from + ratio.to);
  EXPECT_EQ(found, (std::vector<std::string>{"scaling ab", "scaling bd", "tp bc", "recompute af"}));
  EXPECT_DOUBLE_EQ(ratios[0].measured, 1.25);
  EXPECT_DOUBLE_EQ(ratios[0].error(), 1 / 1.25 - 1);
  EXPECT_DOUBLE_EQ(ratios[1].error(), 2 - 1);
  const auto scores = score_ratios(ratios);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].axis, "scaling");
  EXPECT_DOUBLE_EQ(scores[0].score.median, (0.2 + 1) / 2);
  EXPECT_DOUBLE_EQ(scores[2].score.median, 0);
}

TEST(Ratios, ReplicasThatTakeAsMuchArePairsToo) {
  const auto run = [](const std::string& id, const std::string& tp, const std::string& dp, const std::string& batch) {
    return tiny_run({{"id", id}, {"n_gpus", "8"}, {"tp", tp}, {"dp", dp}, {"global_batch", batch}});
  };
  // of 8 sequences a replica, of 64 a step, and of neither
  const RunsTable table({run("a", "1", "8", "64"), run("b", "2", "4", "32"), run("c", "4", "2", "64"), run("d", "8", "1", "24")});
  const std::vector<ValidatedRow> rows = {row_of("a", "s", 1, 1), row_of("b", "s", 1, 1), row_of("c", "s", 1, 1),
                                          row_of("d", "s", 1, 1)};
  std::vector<std::string> found;
  for (const Ratio& ratio : ratios_of(load_runs(table.file()).rows, rows))
    found.push_back(ratio.axis + " " + ratio.from + ratio.to);
  EXPECT_EQ(found, (std::vector<std::string>{"tp ac", "tp ab"}));
}

}  // namespace
}  // namespace tandem::studies::validate_score_test
