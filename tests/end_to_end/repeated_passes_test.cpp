// A step whose passes are copied where they are alike is, to the last bit, the one of which each is lowered.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/lowering/lower_rank.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "tests/end_to_end/random_scenarios.h"
#include "tests/end_to_end/same_dag.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::repeated_passes_test {
namespace {

/// Of the first rank's passes. Throws where they differ, which `lower` would not tell.
std::size_t copied_passes(const Scenario& scenario, const World& world, const StepRange& steps) {
  DagBuilder builder;
  scenarios::add_ranks_and_communicators(world, builder);
  std::size_t copied = 0;
  const auto lower_and_count = [&](scenarios::StageProgram& program) {
    program.lower(steps);
    copied = program.copied_passes();
  };
  scenarios::lower_rank(builder, scenario, world, 0, lower_and_count, scenarios::blocks_of_sharded(scenario));
  return copied;
}

/// Returns how many passes of the first rank were copied.
std::size_t expect_same_as_lowered(const Scenario& scenario, const World& world, StepRange steps) {
  steps.copies_passes = false;
  const Dag each = lower(scenario, world, steps);
  steps.copies_passes = true;
  expect_same(each, lower(scenario, world, steps));
  return copied_passes(scenario, world, steps);
}

std::size_t expect_same_as_lowered(const std::string& overrides) {
  SCOPED_TRACE(overrides);
  const Scenario scenario = tiny_cluster(words(overrides));
  return expect_same_as_lowered(scenario, make_world(scenario, true), scenarios::period_of(scenario));
}

TEST(RepeatedPasses, OfRandomScenariosAreThoseLowered) {
  std::size_t with_copies = 0;
  for (const bool folded : {true, false}) {
    for (const RandomScenario& drawn : random_scenarios(60, folded ? 1 : 1000, 1)) {
      const auto longer =
          with_changes(drawn, {"training.global_batch=" + std::to_string(5 * drawn.scenario.training.global_batch)});
      const Scenario& scenario = longer ? *longer : drawn.scenario;
      SCOPED_TRACE(drawn.text());
      with_copies += expect_same_as_lowered(scenario, make_world(scenario, folded), scenarios::period_of(scenario)) > 0;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(with_copies, 40);
}

TEST(RepeatedPasses, OfEverySchedule) {
  const std::string mesh = "model.layers=8 parallelism.pp=4 parallelism.dp=2 training.global_batch=32 ";
  for (const std::string schedule : {"1f1b", "gpipe", "interleaved-1f1b parallelism.vpp=2", "zb-h1", "zb-v parallelism.vpp=2"})
    for (const std::string overlap : {"false", "true"})
      EXPECT_GT(expect_same_as_lowered(mesh + "training.overlap.dp=" + overlap + " training.overlap.pp=" + overlap +
                                       " training.schedule=" + schedule),
                8);
}

void expect_same_of_shipped(const std::filesystem::path& path, std::int32_t micro_batches) {
  SCOPED_TRACE(path.filename());
  const Scenario scenario = load_scenario(path.string(), {});
  expect_same_as_lowered(scenario, make_world(scenario, true), {.micro_batches = micro_batches});
}

const std::filesystem::path shipped = TANDEM_SOURCE_DIR "/scenarios";

TEST(RepeatedPasses, OfShippedScenariosAreThoseLowered) {
  for (const char* name : {"llama3-405b-16k", "deepseek-v3-2k", "deepseek-v3-gb300", "nemotron-3-nano-b300", "gpt3-175b-1k"}) {
    const Scenario scenario = load_scenario((shipped / (std::string(name) + ".yaml")).string(), {});
    const World world = make_world(scenario, true);
    const StepRange steps{.micro_batches = static_cast<std::int32_t>(std::max<std::int64_t>(24, 4 * scenario.parallelism.pp))};
    EXPECT_GT(expect_same_as_lowered(scenario, world, steps), 0) << name;
  }
}

TEST(SlowRepeatedPasses, OfEachShippedScenarioAreThoseLowered) {
  for (const auto& entry : std::filesystem::directory_iterator(shipped))
    if (entry.path().extension() == ".yaml") expect_same_of_shipped(entry.path(), 0);
}

TEST(SlowRepeatedPasses, OfManyRandomScenariosAreThoseLowered) {
  for (const RandomScenario& drawn : random_scenarios(600, 5000, 1)) {
    const auto longer =
        with_changes(drawn, {"training.global_batch=" + std::to_string(6 * drawn.scenario.training.global_batch)});
    const Scenario& scenario = longer ? *longer : drawn.scenario;
    SCOPED_TRACE(drawn.text());
    expect_same_as_lowered(scenario, make_world(scenario, drawn.seed % 2 == 0), scenarios::period_of(scenario));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tandem::studies::repeated_passes_test
