#include "scenarios/schedules/chunk_layout.h"

#include <gtest/gtest.h>

namespace tandem::scenarios::chunk_layout_test {
namespace {

struct Split {
  std::int64_t layers, pp, vpp;
  bool account_for_embedding, account_for_loss;
};

std::vector<ChunkLayout> lay_out(const Split& split) {
  Scenario scenario;
  scenario.model.layers = split.layers;
  scenario.parallelism = {.pp = split.pp,
                          .vpp = split.vpp,
                          .account_for_embedding = split.account_for_embedding,
                          .account_for_loss = split.account_for_loss};
  return lay_out_chunks(scenario);
}

class Splits : public testing::TestWithParam<Split> {};
INSTANTIATE_TEST_SUITE_P(Stages, Splits,
                         testing::Values(Split{5, 1, 1, false, false}, Split{8, 4, 1, false, false}, Split{8, 2, 2, false, false},
                                         Split{7, 2, 2, false, true}, Split{7, 4, 1, true, false}, Split{2, 4, 1, true, true},
                                         Split{126, 16, 8, true, true}));  // Llama 3 405B: 126 + 2 = 16 * 8

TEST_P(Splits, HoldEachLayerOnceInOrder) {
  std::int64_t next = 0;
  for (const ChunkLayout& chunk : lay_out(GetParam())) {
    EXPECT_EQ(chunk.first_layer, next);
    EXPECT_GE(chunk.layers, 0);
    next += chunk.layers;
  }
  EXPECT_EQ(next, GetParam().layers);
}

TEST_P(Splits, AreEqualWhereTheAccountedEndsTakeALayersPlace) {
  const std::vector<ChunkLayout> chunks = lay_out(GetParam());
  ASSERT_EQ(chunks.size(), static_cast<std::size_t>(GetParam().pp * GetParam().vpp));
  const auto places = [&](const ChunkLayout& chunk) {
    return chunk.layers + (chunk.embedding && GetParam().account_for_embedding ? 1 : 0) +
           (chunk.loss && GetParam().account_for_loss ? 1 : 0);
  };
  for (const ChunkLayout& chunk : chunks) EXPECT_EQ(places(chunk), places(chunks.front()));
}

TEST_P(Splits, EmbedFirstAndEndInTheLoss) {
  const std::vector<ChunkLayout> chunks = lay_out(GetParam());
  for (std::size_t part = 0; part < chunks.size(); ++part) {
    EXPECT_EQ(chunks[part].embedding, part == 0);
    EXPECT_EQ(chunks[part].loss, part + 1 == chunks.size());
  }
}

}  // namespace
}  // namespace tandem::scenarios::chunk_layout_test
