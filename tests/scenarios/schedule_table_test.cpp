#include "scenarios/schedules/schedule_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios::schedule_table_test {
namespace {

std::vector<Action> all_actions(const ScheduleTraits& traits, std::int32_t stages, std::int32_t micro_batches) {
  Scenario scenario;
  scenario.training.schedule = traits.kind;
  scenario.parallelism.pp = stages;
  scenario.parallelism.vpp = traits.least_chunks;
  const std::int32_t chunks = ChunkPlacement(scenario).chunks();
  std::vector<Action> actions;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const auto own = traits.actions({.stage = stage, .stages = stages, .micro_batches = micro_batches, .chunks = chunks});
    actions.insert(actions.end(), own.begin(), own.end());
  }
  return actions;
}

TEST(ScheduleTable, FindsEachScheduleByItsName) {
  for (const ScheduleTraits& traits : schedule_table()) {
    EXPECT_EQ(schedule_named(traits.name), &traits_of(traits.kind));
    EXPECT_EQ(name_of(traits.kind), traits.name);
  }
  EXPECT_EQ(schedule_named("no such schedule"), nullptr);
}

/// The table says of a schedule what its own actions show.
TEST(ScheduleTable, SaysWhatTheActionsShow) {
  constexpr std::int32_t stages = 4, micro_batches = 16;
  for (const ScheduleTraits& traits : schedule_table()) {
    SCOPED_TRACE(traits.name);
    ASSERT_TRUE(traits.admits_stages(stages));
    ASSERT_TRUE(traits.admits_micro_batches(micro_batches, stages));
    const std::vector<Action> actions = all_actions(traits, stages, micro_batches);
    const auto any = [&](auto holds) { return std::ranges::any_of(actions, holds); };
    EXPECT_EQ(any([](const Action& action) { return action.kind == Action::Kind::backward_weight; }), traits.splits_backward);
    EXPECT_EQ(any([](const Action& action) { return action.beside_next; }), traits.pairs_passes);
  }
}

/// The first stage runs all forwards before its first backward where the whole batch is held, and a bounded number elsewhere.
TEST(ScheduleTable, TellsWhoHoldsTheWholeBatch) {
  constexpr std::int32_t stages = 2, micro_batches = 64;
  for (const ScheduleTraits& traits : schedule_table()) {
    SCOPED_TRACE(traits.name);
    const std::vector<Action> actions = all_actions(traits, stages, micro_batches);
    const auto first_backward =
        std::ranges::find_if(actions, [](const Action& action) { return action.kind != Action::Kind::forward; });
    EXPECT_EQ(first_backward - actions.begin() >= micro_batches, traits.holds_whole_batch);
  }
}

TEST(ScheduleTable, CountsMicroBatchesInTheUnitOfTheSchedule) {
  const ScheduleTraits& interleaved = traits_of(ScheduleKind::interleaved);
  EXPECT_TRUE(interleaved.admits_micro_batches(12, 4));
  EXPECT_FALSE(interleaved.admits_micro_batches(10, 4));
  const ScheduleTraits& dualpipe = traits_of(ScheduleKind::dualpipe);
  EXPECT_TRUE(dualpipe.admits_micro_batches(8, 4));
  EXPECT_FALSE(dualpipe.admits_micro_batches(6, 4));
  EXPECT_FALSE(dualpipe.admits_micro_batches(9, 4));
  EXPECT_FALSE(dualpipe.admits_stages(3));
  EXPECT_TRUE(traits_of(ScheduleKind::gpipe).admits_stages(1));
}

}  // namespace
}  // namespace tandem::scenarios::schedule_table_test
