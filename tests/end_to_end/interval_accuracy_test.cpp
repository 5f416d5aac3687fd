// How far steps of published runs are off when what was fitted to them had not seen them, and whether nine in ten lie inside
// their interval then: from bench/accuracy/*.scored.csv, which `./dev bench accuracy` makes, without a simulation. The table of
// intervals, studies/step/interval_table.csv, and bench/accuracy/left_out.csv follow from them and are held to that here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "scenarios/reading/load.h"
#include "studies/step/step_interval.h"
#include "studies/validate/conformal.h"
#include "studies/validate/run_scenario.h"
#include "tests/end_to_end/accuracy.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::studies::interval_accuracy_test {
namespace {

using scenarios::parse_scenario;

std::string generation_of(const std::string& gpu) {
  static std::map<std::string, std::string> known;
  const auto [found, is_new] = known.try_emplace(gpu);
  if (is_new) found->second = name_of(parse_scenario(base_text(), gpu, {"cluster.gpu=" + gpu}).cluster.gpu.architecture);
  return found->second;
}

/// By GPU and precision: what ln(step time) changes by with the constant that no step was used for.
std::map<std::pair<std::string, std::string>, double> fitted_constants() {
  std::map<std::pair<std::string, std::string>, double> found;
  for (const MeasuredRow& row : rows_in_accuracy("fitted.csv"))
    found[{row.at("gpu"), row.at("precision")}] = std::log(std::stod(row.at("value")) / std::stod(row.at("without_steps")));
  return found;
}

std::vector<MeasuredError> measured_errors() {
  const auto fitted = fitted_constants();
  std::vector<MeasuredError> errors;
  for (const std::string table : {"runs", "runs_2025"}) {
    std::map<std::string, MeasuredRow> runs;
    for (const MeasuredRow& row : rows_in_accuracy(table + ".csv")) runs[row.at("id")] = row;
    std::map<std::string, bool> with_experts;
    for (const RunRow& row : load_runs(TANDEM_SOURCE_DIR "/bench/accuracy/" + table + ".csv").rows)
      with_experts[row.text("id")] = has_experts(row);
    for (const MeasuredRow& scored : rows_in_accuracy(table + ".scored.csv")) {
      if (scored.at("error").empty()) continue;
      const MeasuredRow& run = runs.at(scored.at("id"));
      const std::string& gpu = run.at("gpu");
      MeasuredError& error = errors.emplace_back();
      error.source = run.at("source");
      error.step = {with_experts.at(run.at("id")), generation_of(gpu), run.at("framework"), gpu};
      error.log_ratio = std::log1p(std::stod(scored.at("error")));
      error.expected = std::stod(scored.at("expected_error"));
      error.predicted = std::stod(scored.at("predicted_step_time_s"));
      if (const auto at = fitted.find({gpu, run.at("precision")}); at != fitted.end()) error.without_steps = at->second;
    }
  }
  return errors;
}

std::string left_out_csv(const std::vector<LeftOut>& sets) {
  std::string text =
      "set,rows,sources,in_sample_median,in_sample_p90,source_out_median,source_out_p90,source_out_inside,gpu_out_median,"
      "gpu_out_p90,gpu_out_inside\n";
  for (const LeftOut& set : sets)
    text +=
        fmt::format("{},{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.0f},{:.1f},{:.1f},{:.0f}\n", set.name, set.rows, set.sources,
                    100 * set.in_sample.median, 100 * set.in_sample.p90, 100 * set.source_out.median, 100 * set.source_out.p90,
                    100 * set.source_out.coverage, 100 * set.gpu_out.median, 100 * set.gpu_out.p90, 100 * set.gpu_out.coverage);
  return text;
}

std::string built_in_table() {
  std::ifstream file(TANDEM_SOURCE_DIR "/studies/step/interval_table.csv");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(IntervalAccuracy, TheTableFollowsFromTheRuns) {
  expect_unchanged(to_csv(fit_intervals(measured_errors())), built_in_table(), "interval_table.csv");
}

TEST(IntervalAccuracy, LeftOutIsWhatItWas) {
  const std::string now = left_out_csv(leave_out(measured_errors()));
  std::cout << now;
  expect_unchanged(now, file_in_accuracy("left_out.csv"), "left_out.csv");
}

TEST(IntervalAccuracy, NineInTenOfSourcesNeverSeenLieInside) {
  constexpr std::size_t many = 10;
  for (const LeftOut& set : leave_out(measured_errors())) {
    if (set.name == "all") {
      EXPECT_GE(set.source_out.coverage, 0.85);
      EXPECT_LE(set.source_out.coverage, 0.95);
    } else if (set.rows >= many) {
      EXPECT_GE(set.source_out.coverage, 0.75) << set.name;
    }
  }
}

// Whether or not their class is one that is fitted: what is not simulated is said why, and is no more than one run in twenty.
TEST(IntervalAccuracy, NineteenInTwentyPublishedRunsAreSimulated) {
  const std::vector<MeasuredRow> runs = rows_in_accuracy("runs_2025.csv");
  const std::vector<MeasuredRow> scored = rows_in_accuracy("runs_2025.scored.csv");
  ASSERT_EQ(scored.size(), runs.size());
  const auto simulated =
      std::ranges::count_if(scored, [](const MeasuredRow& row) { return !row.at("predicted_step_time_s").empty(); });
  EXPECT_GE(static_cast<double>(simulated), 0.95 * static_cast<double>(runs.size()));
}

TEST(IntervalAccuracy, FittedConstantsAreThePresets) {
  for (const MeasuredRow& row : rows_in_accuracy("fitted.csv")) {
    const Device gpu = parse_scenario(base_text(), "fitted", {"cluster.gpu=" + row.at("gpu")}).cluster.gpu;
    const std::map<std::string, DType> types{
        {"bf16", DType::bf16}, {"fp16", DType::f16}, {"fp8", DType::f8}, {"nvfp4", DType::f4}};
    const DType type = types.at(row.at("precision"));
    EXPECT_DOUBLE_EQ(gpu.efficiency.gemm[static_cast<std::size_t>(type)].sustained, std::stod(row.at("value")))
        << row.at("gpu") << " " << row.at("precision");
  }
}

}  // namespace
}  // namespace tandem::studies::interval_accuracy_test
