#include "studies/validate/conformal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "studies/step/step_interval.h"

namespace tandem::studies::conformal_test {
namespace {

MeasuredError row(int source, double log_ratio, double expected = 0.1) {
  return {"source " + std::to_string(source), {false, "hopper", "nemo", "h100"}, log_ratio, expected, 1, {}};
}

// Of 19 sources with one row each and the one that was never seen, the 18th smallest score has nine tenths at or below it.
TEST(Conformal, FactorIsTheNineteenthsSecondLargestScore) {
  std::vector<MeasuredError> rows;
  for (int i = 1; i <= 19; ++i) rows.push_back(row(i, i % 2 == 0 ? 0.01 * i : -0.01 * i));
  const IntervalTable table = fit_intervals(rows);
  EXPECT_NEAR(table.classes.at("all").factor, 1.8, 1e-12);
  EXPECT_EQ(table.classes.at("all").rows, 19U);
  EXPECT_EQ(table.classes.at("dense hopper nemo").sources, 19U);
  EXPECT_EQ(table.gpus.at("h100"), 19U);
}

TEST(Conformal, ASourceWeighsTheSameHoweverManyRowsItHas) {
  std::vector<MeasuredError> rows;
  for (int i = 1; i <= 19; ++i) rows.push_back(row(i, 0.01 * i));
  for (int i = 0; i < 1000; ++i) rows.push_back(row(19, 0.19));
  EXPECT_NEAR(fit_intervals(rows).classes.at("all").factor, 1.8, 1e-12);
}

TEST(Conformal, FewSourcesBoundNothing) {
  std::vector<MeasuredError> rows;
  for (int i = 1; i <= 8; ++i) rows.push_back(row(i, 0.01 * i));
  EXPECT_TRUE(std::isinf(fit_intervals(rows).classes.at("all").factor));
  rows.push_back(row(9, 0.09));
  EXPECT_NEAR(fit_intervals(rows).classes.at("all").factor, 0.9, 1e-12);
}

// A class of many sources is as wide as its own rows ask for; one of a single source that is right is hardly narrower than the
// class around it.
TEST(Conformal, AClassLearnsFromTheOneAround) {
  std::vector<MeasuredError> rows;
  for (int i = 1; i <= 160; ++i) rows.push_back(row(i, 0.00025 * i));
  for (int i = 161; i <= 200; ++i) {
    rows.push_back(row(i, 0.01 * (i - 120)));
    rows.back().step.has_experts = true;
  }
  rows.push_back(row(201, 0));
  rows.back().step.framework = "another";
  const IntervalTable table = fit_intervals(rows);
  EXPECT_LT(table.classes.at("dense").factor, 0.5 * table.classes.at("all").factor);
  EXPECT_GT(table.classes.at("experts").factor, table.classes.at("all").factor * 0.99);
  EXPECT_GE(table.classes.at("dense hopper another").factor, 0.9 * table.classes.at("dense hopper").factor);
}

// The one that was never seen counts in every class: of 16 + 1 + 1 sources nine tenths are 16.2, more than those around weigh, so
// that one source which is further off than all of them bounds its class.
TEST(Conformal, TheSourceNeverSeenCountsInEveryClass) {
  std::vector<MeasuredError> rows;
  for (int i = 1; i <= 200; ++i) rows.push_back(row(i, 0.01));
  rows.push_back(row(201, 0.05));
  rows.back().step.framework = "another";
  const IntervalTable table = fit_intervals(rows);
  EXPECT_NEAR(table.classes.at("dense hopper").factor, 0.1, 1e-12);
  EXPECT_NEAR(table.classes.at("dense hopper another").factor, 0.5, 1e-12);
}

// Sources with a bias of their own and rows around it: with each left out, nine in ten rows lie inside.
TEST(Conformal, HoldsForSourcesNeverSeen) {
  std::mt19937 random(7);
  std::normal_distribution<double> unit;
  std::vector<MeasuredError> rows;
  for (int source = 0; source < 200; ++source) {
    const double bias = 0.1 * unit(random);
    for (int i = 0; i < 1 + source % 4; ++i) rows.push_back(row(source, bias + 0.05 * unit(random)));
  }
  EXPECT_NEAR(leave_out(rows).front().source_out.coverage, 0.9, 0.03);
}

// A speed fitted to two sources that disagree is right for neither without it: left out, a source is off by all of it.
TEST(Conformal, SourceOutMovesTheFittedSpeed) {
  std::vector<MeasuredError> rows;
  for (int i = 0; i < 10; ++i) {
    rows.push_back(row(i, i % 2 == 0 ? 0.005 : -0.005));
    rows.back().without_steps = -0.1;
  }
  const LeftOut all = leave_out(rows).front();
  EXPECT_NEAR(all.in_sample.median, std::expm1(0.005), 1e-4);
  EXPECT_NEAR(all.source_out.median, 0.005 + 0.005 / 9, 1e-4);  // the mean of the others is 1 / 9 of it on the other side
  EXPECT_NEAR(all.gpu_out.median, 0.1, 0.01);
}

TEST(Conformal, TheTableIsReadAsItWasWritten) {
  std::vector<MeasuredError> rows;
  for (int i = 1; i <= 20; ++i) rows.push_back(row(i, 0.01 * i));
  const std::string text = to_csv(fit_intervals(rows));
  EXPECT_EQ(to_csv(interval_table_from_csv(text)), text);
  EXPECT_THROW(interval_table_from_csv("kind,name,runs,sources,value\nwhat,all,1,1,1\n"), std::logic_error);
}

}  // namespace
}  // namespace tandem::studies::conformal_test
