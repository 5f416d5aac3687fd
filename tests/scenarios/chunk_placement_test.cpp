#include "scenarios/schedules/chunk_placement.h"

#include <gtest/gtest.h>

#include <vector>

#include "scenarios/schedules/chunk_layout.h"

namespace tandem::scenarios::chunk_placement_test {
namespace {

Scenario pipeline(ScheduleKind schedule, std::int64_t pp, std::int64_t vpp) {
  Scenario scenario;
  scenario.training.schedule = schedule;
  scenario.parallelism.pp = pp;
  scenario.parallelism.vpp = vpp;
  return scenario;
}

const std::vector<Scenario> pipelines{pipeline(ScheduleKind::one_f_one_b, 4, 1), pipeline(ScheduleKind::interleaved, 4, 3),
                                      pipeline(ScheduleKind::zero_bubble_v, 4, 2), pipeline(ScheduleKind::zero_bubble_v, 3, 2),
                                      pipeline(ScheduleKind::dualpipe, 6, 1)};

TEST(ChunkPlacement, HoldsEachPartAsOftenAsThereAreCopies) {
  for (const Scenario& scenario : pipelines) {
    const ChunkPlacement placement(scenario);
    std::vector<std::int32_t> holders(static_cast<std::size_t>(placement.parts()), 0);
    for (std::int32_t stage = 0; stage < scenario.parallelism.pp; ++stage) {
      for (std::int32_t chunk = 0; chunk < placement.chunks(); ++chunk) {
        ++holders[static_cast<std::size_t>(placement.part(stage, chunk))];
        if (placement.copies() == 1) {
          EXPECT_EQ(placement.stage(placement.part(stage, chunk)), stage);
        }
      }
    }
    for (const std::int32_t count : holders) EXPECT_EQ(count, placement.copies());
  }
}

TEST(ChunkPlacement, TurnsTheVAtTheLastStage) {
  const ChunkPlacement v(pipeline(ScheduleKind::zero_bubble_v, 4, 2));
  const std::vector<std::int32_t> stages{0, 1, 2, 3, 3, 2, 1, 0};
  for (std::int32_t part = 0; part < v.parts(); ++part) {
    EXPECT_EQ(v.stage(part), stages[static_cast<std::size_t>(part)]);
    EXPECT_EQ(v.turns_after(part), part == 3);
  }
}

std::vector<std::int64_t> layers_of(Scenario scenario, std::int64_t layers, std::int64_t first, std::int64_t last) {
  scenario.model.layers = layers;
  scenario.parallelism.first_stage_layers = first;
  scenario.parallelism.last_stage_layers = last;
  std::vector<std::int64_t> counts;
  for (const ChunkLayout& chunk : lay_out_chunks(scenario)) counts.push_back(chunk.layers);
  return counts;
}

TEST(UnevenStages, HaveTheGivenLayersAndShareTheRest) {
  using Layers = std::vector<std::int64_t>;
  const Scenario plain = pipeline(ScheduleKind::one_f_one_b, 4, 1);
  EXPECT_EQ(layers_of(plain, 7, 1, 2), (Layers{1, 2, 2, 2}));
  EXPECT_EQ(layers_of(plain, 13, 1, 0), (Layers{1, 4, 4, 4}));
  EXPECT_EQ(layers_of(pipeline(ScheduleKind::one_f_one_b, 2, 1), 7, 3, 4), (Layers{3, 4}));
  // A stage's layers are shared by its chunks.
  EXPECT_EQ(layers_of(pipeline(ScheduleKind::interleaved, 2, 2), 6, 0, 2), (Layers{2, 1, 2, 1}));
  EXPECT_EQ(layers_of(pipeline(ScheduleKind::zero_bubble_v, 2, 2), 6, 0, 2), (Layers{2, 1, 1, 2}));
  // DeepSeek-V3: 61 layers on 16 stages.
  EXPECT_EQ(layers_of(pipeline(ScheduleKind::dualpipe, 16, 1), 61, 3, 2),
            (Layers{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2}));
}

}  // namespace
}  // namespace tandem::scenarios::chunk_placement_test
