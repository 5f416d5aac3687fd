// Pipeline bubbles against their closed forms (Narayanan et al. 2021, section 2.2), with communication for free and equal stages.

#include <gtest/gtest.h>

#include "runtime/analysis/time_parts.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::bubble_test {
namespace {

double bubble_fraction(int stages, int micro_batches, int chunks, const std::string& schedule) {
  const Scenario scenario = pure_pipeline(stages, micro_batches, schedule, chunks);
  const Dag dag = lower(scenario, make_world(scenario, true));
  const Timeline timeline = simulate(dag).timeline;
  return mean_over_ranks(dag, time_parts(dag, timeline)).bubble / timeline.makespan();
}

TEST(Bubble, OneForwardOneBackward) {
  for (const auto& [p, m] : {std::pair(16, 64), std::pair(4, 8), std::pair(8, 8)}) {
    const double expected = (p - 1.0) / (m + p - 1.0);
    EXPECT_NEAR(bubble_fraction(p, m, 1, "1f1b"), expected, 0.02 * expected) << "p " << p << ", m " << m;
  }
}

TEST(Bubble, GpipeIdlesAsMuch) {
  const double expected = 15.0 / (64 + 15);
  EXPECT_NEAR(bubble_fraction(16, 64, 1, "gpipe"), expected, 0.02 * expected);
}

TEST(Bubble, Interleaved) {
  for (const int v : {2, 4}) {
    const double expected = 15.0 / (v * 64 + 15);
    EXPECT_NEAR(bubble_fraction(16, 64, v, "interleaved-1f1b"), expected, 0.02 * expected) << "v " << v;
  }
}

}  // namespace
}  // namespace tandem::studies::bubble_test
