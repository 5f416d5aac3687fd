// A site learnt from runs: what such runs were made with is found again, as far as they tell, and no further from the presets.
#include "studies/calibrate/site_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <fstream>

#include "runtime/base/input_error.h"
#include "scenarios/reading/profile_yaml.h"
#include "studies/calibrate/profile_yaml.h"
#include "studies/calibrate/site_profile.h"
#include "studies/step/step_interval.h"
#include "studies/validate/validated_row.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/studies/runs_table.h"
#include "traces/profile_file.h"

namespace tandem::studies::site_fit_test {
namespace {

using scenarios::profile_of_yaml;
using testing::HasSubstr;

constexpr std::size_t jobs = 2;

std::vector<RunRow> rows_of(const std::vector<RunCells>& runs) { return load_runs(RunsTable(runs).file()).rows; }

/// Runs whose shares of kernels, communication and overhead differ.
std::vector<RunCells> different_runs() {
  std::vector<RunCells> runs;
  const auto add = [&](RunCells changes) {
    changes["id"] = "run " + std::to_string(runs.size());
    changes["framework"] = "megatron-core";
    runs.push_back(tiny_run(changes));
  };
  add({});
  add({{"hidden", "1024"}, {"heads", "8"}, {"ffn", "4096"}, {"sequence", "1024"}});
  add({{"hidden", "2048"}, {"heads", "16"}, {"ffn", "8192"}, {"sequence", "1024"}});
  add({{"hidden", "2048"}, {"heads", "16"}, {"ffn", "8192"}, {"sequence", "1024"}, {"tp", "8"}, {"sp", "1"}});
  add({{"hidden", "1024"}, {"heads", "8"}, {"ffn", "4096"}, {"sequence", "1024"}, {"n_gpus", "16"}, {"global_batch", "16"}});
  add({{"hidden", "2048"}, {"heads", "16"}, {"ffn", "8192"}, {"sequence", "1024"}, {"n_gpus", "32"}, {"global_batch", "32"}});
  return runs;
}

/// The same runs, as a site with these factors would measure them.
std::vector<RunCells> measured_at(const Site& site, std::vector<RunCells> runs) {
  const std::vector<ValidatedRow> rows = validate_rows(rows_of(runs), jobs, {}, site);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i]["step_time_s"] = fmt::format("{}", rows[i].prediction->step_time);
  return runs;
}

/// Sites differ by up to `factor` times the expected errors, and runs of one by up to `within` times.
IntervalTable table_with(double factor, double within, Seconds overhead) {
  IntervalTable table;
  table.classes["all"] = {100, 20, factor, within};
  table.overhead = overhead;
  return table;
}

const Site known_site{.runs = 1, .gpu = "any", .framework = "any", .kernels = 1.2, .communication = 1.6, .overhead = 0.002};

TEST(SiteFit, FindsTheSiteThatMadeTheRuns) {
  const SiteFit fit = fit_site(rows_of(measured_at(known_site, different_runs())), jobs, {}, table_with(10, 1e-3, 0.1));
  EXPECT_NEAR(fit.site.kernels, known_site.kernels, 2e-3);
  EXPECT_NEAR(fit.site.communication, known_site.communication, 2e-2);
  EXPECT_NEAR(fit.site.overhead, known_site.overhead, 2e-5);
  EXPECT_EQ(fit.site.runs, 6);
  EXPECT_EQ(fit.site.framework, "megatron-core");
  for (const FittedRun& run : fit.runs) {
    EXPECT_LT(std::abs(run.learnt_error()), 1e-3) << run.id;
    EXPECT_LT(run.preset_error(), -0.1) << run.id;
  }
}

// The more runs of one site are alike, the more of what these are off by is taken to be the site's.
TEST(SiteFit, AFewNoisyRunsMoveItPartOfTheWay) {
  const std::vector<RunCells> runs = measured_at(known_site, different_runs());
  double before = 1;
  for (const double within : {2.9, 1.0, 0.3, 0.03}) {
    double off = 0;
    for (const FittedRun& run : fit_site(rows_of(runs), jobs, {}, table_with(3, within, 0.001)).runs) {
      EXPECT_GT(run.learnt, run.preset) << run.id;
      off = std::max(off, std::abs(run.learnt_error()));
    }
    EXPECT_LT(off, before) << within;
    before = off;
  }
}

TEST(SiteFit, RunsAsThePresetsSayLeaveThemAndNarrowTheInterval) {
  const std::vector<RunCells> runs = measured_at({}, different_runs());
  const SiteFit fit = fit_site(rows_of(runs), jobs, {}, table_with(2, 0.7, 0.05));
  EXPECT_NEAR(fit.site.kernels, 1, 1e-3);
  EXPECT_NEAR(fit.site.communication, 1, 1e-3);
  EXPECT_NEAR(fit.site.overhead, 0, 1e-4);
  const Site& site = fit.site;
  // More runs leave less to doubt.
  const SiteFit of_two = fit_site(rows_of({runs[0], runs[2]}), jobs, {}, table_with(2, 0.7, 0.05));
  EXPECT_LT(site.covariance[0], of_two.site.covariance[0]);
}

TEST(SiteFit, RunsThatDifferMoreThanUsualLeaveMoreToDoubt) {
  std::vector<RunCells> runs = measured_at({}, different_runs());
  const Site alike = fit_site(rows_of(runs), jobs, {}, table_with(2, 0.7, 0.001)).site;
  EXPECT_EQ(alike.spread, 1);
  for (std::size_t i = 0; i < runs.size(); ++i)
    runs[i]["step_time_s"] = fmt::format("{}", std::stod(runs[i]["step_time_s"]) * (i % 2 == 0 ? 0.5 : 2));
  const Site apart = fit_site(rows_of(runs), jobs, {}, table_with(2, 0.7, 0.001)).site;
  EXPECT_GT(apart.spread, 5);
  EXPECT_GT(apart.covariance[0], 10 * alike.covariance[0]);
}

TEST(SiteFit, TheOverheadIsNeverNegative) {
  Site fast = known_site;
  fast.kernels = fast.communication = 0.8;
  fast.overhead = 0;
  std::vector<RunCells> runs = measured_at(fast, different_runs());
  for (RunCells& run : runs) run["step_time_s"] = fmt::format("{}", std::stod(run["step_time_s"]) - 0.0005);
  const Site site = fit_site(rows_of(runs), jobs, {}, table_with(5, 0.1, 0.1)).site;
  EXPECT_EQ(site.overhead, 0);
  EXPECT_EQ(site.covariance[5], 0);
  EXPECT_LT(site.kernels, 1);
}

TEST(SiteFit, RefusesRunsOfTwoSitesAndTablesWithoutMeasurements) {
  const auto refusal = [](const std::vector<RunCells>& runs) -> std::string {
    try {
      fit_site(rows_of(runs), jobs);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({tiny_run(), tiny_run({{"id", "b"}, {"gpu", "a100-80gb"}})}), HasSubstr("expected runs of one site"));
  EXPECT_THAT(refusal({tiny_run({{"framework", "nemo"}}), tiny_run({{"id", "b"}, {"framework", "torchtitan"}})}),
              HasSubstr("the framework torchtitan"));
  EXPECT_THAT(refusal({tiny_run({{"step_time_s", ""}})}), HasSubstr("no run was measured"));
}

TEST(SiteFit, RowsThatSayNothingAreNamed) {
  const SiteFit fit =
      fit_site(rows_of({tiny_run(), tiny_run({{"id", "b"}, {"step_time_s", ""}}), tiny_run({{"id", "c"}, {"tp", "3"}})}), jobs);
  EXPECT_EQ(fit.runs.size(), 1U);
  ASSERT_EQ(fit.left_out.size(), 2U);
  EXPECT_EQ(fit.left_out[0], "b: nothing was measured");
  EXPECT_THAT(fit.left_out[1], HasSubstr("c: "));
}

Site some_site() {
  Site site = known_site;
  site.gpu = "h100-sxm-80gb";
  site.framework = "megatron-core";
  site.covariance = {0.01, -0.002, 1e-4, 0.04, 0, 1e-6};
  return site;
}

TEST(SiteProfile, BothFilesHoldTheSite) {
  const TemporaryFolder folder;
  const Profile profile = profile_of(some_site());
  EXPECT_EQ(profile_of_yaml(to_yaml(profile), "site.yaml").site, some_site());
  std::ofstream(folder / "p", std::ios::binary) << traces::to_bytes(profile);
  EXPECT_EQ(traces::read_profile_file(folder / "p").site, some_site());
}

TEST(SiteProfile, WhatCannotBeIsRefused) {
  const auto refusal = [](Site site) -> std::string {
    Profile profile;
    profile.site = site;
    return first_flaw(profile);
  };
  EXPECT_EQ(refusal(some_site()), "");
  Site site = some_site();
  site.kernels = 0;
  EXPECT_NE(refusal(site), "");
  site = some_site();
  site.covariance[1] = 0.03;  // more than the root of both variances' product
  EXPECT_NE(refusal(site), "");
  site = some_site();
  site.overhead = -1;
  EXPECT_NE(refusal(site), "");
}

TEST(SiteInterval, IsThatOfTheCovariancesAndOfRunsWithin) {
  const StepClass step{false, "hopper", "megatron-core", "h100-sxm-80gb"};
  IntervalTable table = table_with(3, 1.2, 0.05);
  table.gpus[step.gpu] = 1;
  table.frameworks[step.framework] = 1;
  const ErrorParts expected{0.02, 0.01, 0.02, 0.03, 0.06, 0};
  const SiteOfStep site{.site = some_site(), .of_kernels = 0.8, .of_communication = 0.2, .of_overhead = 1 / 0.5};
  const Interval interval = interval_around(0.5, expected, step, table, site);
  const auto& [kk, kc, ko, cc, co, oo] = site.site.covariance;
  const double variance = 0.64 * kk + 2 * 0.16 * kc + 0.04 * cc + 2 * 0.8 * 2 * ko + 2 * 0.2 * 2 * co + 4 * oo;
  const double within = 1.2 / nine_in_ten * total(expected);
  EXPECT_NEAR(std::log(interval.high / 0.5), nine_in_ten * std::sqrt(variance + within * within), 1e-12);
  EXPECT_EQ(interval.known_class, "site");
  double shares = 0;
  for (std::size_t part = 0; part < error_part_count; ++part) shares += interval.share_of(static_cast<ErrorPart>(part));
  EXPECT_NEAR(shares, 1, 1e-12);
  // Of another framework the site tells nothing.
  StepClass other = step;
  other.framework = "nemo";
  EXPECT_EQ(interval_around(0.5, expected, other, table, site).high, interval_around(0.5, expected, other, table).high);
}

}  // namespace
}  // namespace tandem::studies::site_fit_test
