#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/mesh/attended_keys.h"
#include "scenarios/mesh/positions.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::context_parallel_test {
namespace {

using Overrides = std::vector<std::string>;

Scenario base(const Overrides& overrides) { return parse_scenario(base_text(), "base", overrides); }

std::string refusal(const Overrides& overrides) {
  try {
    base(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const Overrides cp4{"parallelism.pp=1", "parallelism.dp=2", "parallelism.cp=4"};

Overrides with(Overrides overrides, const Overrides& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

TEST(ContextParallelScenario, RingsOverZigzagChunksUnlessToldOtherwise) {
  const ParallelismSpec ring = base(cp4).parallelism;
  EXPECT_EQ(ring.cp_method, CpMethod::ring);
  EXPECT_EQ(ring.cp_layout, CpLayout::zigzag);
  const ParallelismSpec gather =
      base(with(cp4, {"parallelism.cp_method=all-gather", "parallelism.cp_layout=contiguous"})).parallelism;
  EXPECT_EQ(gather.cp_method, CpMethod::all_gather);
  EXPECT_EQ(gather.cp_layout, CpLayout::contiguous);
  const Overrides ulysses{"parallelism.tp=1", "parallelism.dp=8", "parallelism.cp_method=ulysses"};
  EXPECT_EQ(base(with(cp4, ulysses)).parallelism.cp_layout, CpLayout::contiguous);
}

TEST(ContextParallelScenario, RefusesSequencesThatDoNotDivide) {
  const Overrides without_sp = with(cp4, {"parallelism.sp=false"});
  EXPECT_THAT(
      refusal(with(without_sp, {"training.sequence=1020"})),
      testing::HasSubstr("sequence 1020 is not a multiple of 2 * cp 4, as zigzag's two chunks per rank need; nearest that "
                         "are: 1016, 1024"));
  EXPECT_EQ(refusal(with(without_sp, {"training.sequence=1020", "parallelism.cp_layout=contiguous"})), "accepted");
  EXPECT_THAT(refusal(with(without_sp, {"training.sequence=1022", "parallelism.cp_layout=contiguous"})),
              testing::HasSubstr("sequence 1022 is not a multiple of cp 4; nearest that are: 1020, 1024"));
  EXPECT_THAT(refusal(with(cp4, {"training.sequence=1032"})),
              testing::HasSubstr("sequence 1032 is not a multiple of cp 4 * tp 4, which sp needs; nearest that are: 1024, 1040"));
}

TEST(ContextParallelScenario, UlyssesInGroupsNeedsGroupsAndARing) {
  const Overrides two_levels = with(cp4, {"parallelism.tp=1", "parallelism.dp=8", "parallelism.cp_method=ulysses-ring"});
  EXPECT_THAT(refusal(two_levels), testing::HasSubstr("cp_ulysses is missing"));
  EXPECT_EQ(refusal(with(two_levels, {"parallelism.cp_ulysses=2"})), "accepted");
  EXPECT_THAT(refusal(with(two_levels, {"parallelism.cp_ulysses=3"})), testing::HasSubstr("cp_ulysses 3 does not divide cp 4"));
  EXPECT_THAT(refusal(with(two_levels, {"parallelism.cp_ulysses=4"})), testing::HasSubstr("leaves no ring of cp 4"));
  EXPECT_THAT(refusal(with(cp4, {"parallelism.cp_ulysses=2"})), testing::HasSubstr("without cp_method ulysses-ring"));
}

TEST(ContextParallelScenario, UlyssesNeedsRunsAndHeadsForAll) {
  const Overrides ulysses = with(cp4, {"parallelism.cp_method=ulysses"});
  EXPECT_THAT(refusal(with(ulysses, {"parallelism.cp_layout=zigzag"})), testing::HasSubstr("expected cp_layout contiguous"));
  EXPECT_THAT(refusal(ulysses), testing::HasSubstr("cp 4 does not divide the 2 heads of a tensor-parallel rank"));
  EXPECT_THAT(refusal(with(ulysses, {"parallelism.tp=2", "parallelism.dp=4"})),
              testing::HasSubstr("cp 4 does not divide the 2 kv_heads of a tensor-parallel rank"));
  EXPECT_THAT(refusal({"parallelism.tp=4", "parallelism.pp=1", "parallelism.cp=2", "parallelism.dp=4", "model.kv_heads=2",
                       "parallelism.cp_method=ulysses"}),
              testing::HasSubstr("cp 2 does not divide the 1 kv_heads of a tensor-parallel rank"));
}

TEST(ContextParallelPositions, EveryPositionIsHeldOnce) {
  for (const char* layout : {"zigzag", "contiguous"}) {
    const Scenario scenario = base(with(cp4, {std::string("parallelism.cp_layout=") + layout}));
    std::vector<int> held(1024, 0);
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      const Positions positions = positions_of(scenario, rank);
      EXPECT_EQ(positions.count(), 256);
      for (std::int32_t i = 0; i < positions.count(); ++i) ++held[static_cast<std::size_t>(positions.at(i))];
    }
    EXPECT_THAT(held, testing::Each(1)) << layout;
  }
}

TEST(ContextParallelPositions, ZigzagPairsAnEarlyChunkWithALateOne) {
  const Scenario scenario = base(cp4);
  EXPECT_EQ(positions_of(scenario, 0), (Positions{.start = {0, 896}, .length = {128, 128}}));
  EXPECT_EQ(positions_of(scenario, 3), (Positions{.start = {384, 512}, .length = {128, 128}}));
}

// DeepSeek-V3.2's on 32 ranks, in chunks as long as the keys that a query chooses are many: the first chunk alone has fewer.
TEST(ContextParallelWork, OfChosenKeysIsEqualBehindTheFirstChunk) {
  Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/scenarios/deepseek-v3.2-2k.yaml", {});
  EXPECT_EQ(scenario.training.sequence / 64, scenario.model.indexer.top_k);
  std::vector<std::uint32_t> expected(32, 1);
  expected[0] = 0;
  EXPECT_EQ(work_of_context_ranks(scenario), expected);
  scenario.model.indexer.top_k = scenario.training.sequence;
  EXPECT_THAT(work_of_context_ranks(scenario), testing::Each(0));
}

TEST(ContextParallelWork, OfDocumentsIsEqualOnlyInChunksOfEachWithoutWindows) {
  const auto work = [](const Overrides& more) {
    return work_of_context_ranks(base(with(with(cp4, {"training.documents.mean=100", "training.documents.sigma=1"}), more)));
  };
  const std::vector<std::uint32_t> apart{0, 1, 2, 3};
  EXPECT_THAT(work({"parallelism.cp_layout=document-zigzag"}), testing::Each(0));
  EXPECT_EQ(work({"parallelism.cp_layout=zigzag"}), apart);
  const Overrides windows{"parallelism.cp_layout=document-zigzag", "model.layer_types=[sliding_attention]", "model.window=8"};
  EXPECT_EQ(work(windows), apart);
  EXPECT_THAT(work(with(windows, {"model.window=1024"})), testing::Each(0));
}

}  // namespace
}  // namespace tandem::scenarios::context_parallel_test
