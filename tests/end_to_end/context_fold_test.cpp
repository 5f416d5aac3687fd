// Context-parallel ranks fold where their queries have as many keys to attend to, and only there: each task of a rank runs when
// that of its class does, folded or not.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/ops/attention_mask.h"
#include "scenarios/mesh/attended_keys.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::context_fold_test {
namespace {

const std::string latent =
    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 ";
const std::string sparse = latent + "model.indexer.heads=4 model.indexer.head_dim=8 model.indexer.top_k=";
const std::string compressed =
    "model.kv_heads=1 model.head_dim=8 model.compressed_attention.q_rank=12 model.compressed_attention.rope_dim=4 "
    "model.compressed_attention.output_groups=4 model.compressed_attention.output_rank=6 "
    "model.compressed_attention.index_heads=4 model.compressed_attention.index_head_dim=6 ";
// One layer and micro-batch, on a node: nothing but attention tells ranks apart.
const std::string small = "model.layers=1 training.global_batch=1 training.sequence=32 ";
const std::string gather = "parallelism.cp_method=all-gather ", contiguous = "parallelism.cp_layout=contiguous ";

std::string ranks(int cp) { return small + "parallelism.cp=" + std::to_string(cp) + " "; }

std::size_t classes(const std::string& overrides) {
  SCOPED_TRACE(overrides);
  return expect_equal_when_folded(tiny_cluster(words(overrides)));
}

// Of 2 cp chunks of `chunk` positions, rank r holds chunks r and 2 cp - 1 - r. A query at p has min(p + 1, top_k) keys: one in
// the first top_k positions has fewer, so ranks whose chunks all begin at top_k - 1 or later are alike.
TEST(ContextFold, OfChosenKeysZigzagRanksAreAlikeBehindTheFirstOfThem) {
  EXPECT_EQ(classes(ranks(4) + gather + sparse + "4"), 2U);  // chunks of 4: rank 0 alone has less
  EXPECT_EQ(classes(ranks(4) + gather + sparse + "5"), 2U);  // position 4 has 5 keys
  EXPECT_EQ(classes(ranks(4) + gather + sparse + "6"), 3U);  // and here one too few
  EXPECT_EQ(classes(ranks(4) + gather + sparse + "9"), 3U);
  EXPECT_EQ(classes(ranks(4) + gather + sparse + "16"), 4U);
  EXPECT_EQ(classes(ranks(4) + gather + sparse + "1"), 1U);   // every query has one
  EXPECT_EQ(classes(ranks(4) + gather + sparse + "32"), 1U);  // or all that it sees, in chunks that make up for one another
  EXPECT_EQ(classes(ranks(8) + gather + sparse + "2"), 2U);
  EXPECT_EQ(classes(ranks(8) + gather + sparse + "8"), 5U);
}

// The indexer scores all keys that a query sees, of which later runs have more.
TEST(ContextFold, OfChosenKeysContiguousRanksAreAllUnlike) {
  for (const char* top_k : {"1", "8", "32"}) EXPECT_EQ(classes(ranks(4) + gather + contiguous + sparse + top_k), 4U);
}

const std::string sliding = "model.layer_types=[sliding_attention] model.window=",
                  chunked = "model.layer_types=[chunked_attention] model.attention_chunk=";

// As with keys that are chosen; runs in place of chunks are alike, too, as no indexer sees more than the window.
TEST(ContextFold, OfWindowsRanksAreAlikeBehindTheFirstOfThem) {
  EXPECT_EQ(classes(ranks(4) + gather + sliding + "4"), 2U);
  EXPECT_EQ(classes(ranks(4) + gather + sliding + "6"), 3U);
  EXPECT_EQ(classes(ranks(8) + gather + sliding + "3"), 2U);
  EXPECT_EQ(classes(ranks(4) + gather + contiguous + sliding + "8"), 2U);
  EXPECT_EQ(classes(ranks(4) + gather + contiguous + sliding + "12"), 3U);
  EXPECT_EQ(classes(ranks(4) + gather + "model.layer_types=[sliding_attention,full_attention] model.layers=2 model.window=4"),
            2U);
}

// Positions see those of their own run of positions: ranks that hold whole such runs are alike.
TEST(ContextFold, OfChunkedAttentionRanksOfWholeChunksAreAlike) {
  EXPECT_EQ(classes(ranks(4) + gather + chunked + "4"), 1U);
  EXPECT_EQ(classes(ranks(4) + gather + contiguous + chunked + "4"), 1U);
  EXPECT_EQ(classes(ranks(4) + gather + contiguous + chunked + "16"), 2U);  // first halves of a chunk, and second ones
}

// In a ring hops come one after the other: ranks of equal sums whose keys come in other hops are not alike, nor are those whose
// neighbours are not.
TEST(ContextFold, RingsAreAlikeHopByHop) {
  EXPECT_EQ(classes(ranks(4) + "model.layer_types=[full_attention]"), 1U);
  EXPECT_EQ(classes(ranks(4) + sliding + "4"), 4U);
  EXPECT_EQ(classes(ranks(4) + contiguous + sliding + "4"), 4U);  // the first sees none before it, which its neighbours wait for
  EXPECT_EQ(classes(ranks(4) + contiguous + chunked + "8"), 1U);  // nobody sees another's keys
  EXPECT_EQ(classes(ranks(4) + contiguous + chunked + "16"), 2U);
  EXPECT_EQ(classes(ranks(8) + "parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 " + contiguous + chunked + "16"), 2U);
}

// Ranks of equal sums over all hops that see them in another order do not fold (see `RingsAreAlikeHopByHop`), and are not equal.
TEST(ContextFold, EqualSumsOfHopsAreNotEqualWork) {
  const Scenario scenario = tiny_cluster(words(ranks(4) + chunked + "8"));
  const std::vector<std::uint32_t> work = work_of_context_ranks(scenario);
  const auto pairs_of = [&](std::int64_t rank) {
    std::int64_t sum = 0;
    for (std::int64_t hop = 0; hop < 4; ++hop)
      sum += seen_pairs(seen_keys(scenario, Mixer::chunked_attention, block_after(hop, 32, true, rank, 4)), 8, 8);
    return sum;
  };
  EXPECT_EQ(pairs_of(0), pairs_of(1));
  EXPECT_NE(work[0], work[1]);
  classes(ranks(4) + chunked + "8");
}

// A query at p sees floor((p + 1) / ratio) compressed keys. Chunks of `ratio` positions, or of half as many, make up for one
// another; a window takes some keys from the first.
TEST(ContextFold, OfCompressedKeysRanksFoldByWhatTheySee) {
  const auto layers = [](const std::string& type, int window, int ratio, int top_k) {
    return compressed + "model.layer_types=[" + type + "] model.window=" + std::to_string(window) +
           " model.compressed_attention.heavy_ratio=" + std::to_string(ratio) +
           " model.compressed_attention.sparse_ratio=" + std::to_string(ratio) +
           " model.compressed_attention.index_top_k=" + std::to_string(top_k);
  };
  EXPECT_EQ(classes(ranks(4) + gather + layers("heavily_compressed_attention", 1, 2, 1)), 1U);
  EXPECT_EQ(classes(ranks(4) + gather + layers("heavily_compressed_attention", 4, 4, 1)), 2U);
  EXPECT_EQ(classes(ranks(4) + gather + layers("heavily_compressed_attention", 1, 8, 1)), 1U);
  // Of a key for 16, the last query of chunks 3 and 7, of ranks 3 and 0, sees one that those before it do not.
  EXPECT_EQ(classes(ranks(4) + gather + layers("heavily_compressed_attention", 1, 16, 1)), 2U);
  EXPECT_EQ(classes(ranks(4) + gather + layers("compressed_sparse_attention", 1, 2, 2)), 2U);
  EXPECT_EQ(classes(ranks(4) + gather + layers("compressed_sparse_attention", 1, 2, 16)), 1U);
  EXPECT_EQ(classes(ranks(4) + gather + layers("sliding_attention", 4, 2, 1)), 2U);
  EXPECT_EQ(classes(ranks(4) + gather + contiguous + layers("compressed_sparse_attention", 3, 2, 2)), 4U);
}

/// One at random of what decides how many keys a query sees, on a mesh with neighbours of other kinds.
std::string drawn(std::mt19937_64& random) {
  const auto number = [&](int first, int last) { return std::uniform_int_distribution(first, last)(random); };
  const auto one_of = [&](const std::vector<std::string>& choices) {
    return choices[static_cast<std::size_t>(number(0, static_cast<int>(choices.size()) - 1))];
  };
  const std::string keys = std::to_string(number(1, 33));
  std::string overrides =
      "training.sequence=32 training.global_batch=4 model.layers=2 parallelism.cp=" + one_of({"2", "4", "8"}) +
      " parallelism.tp=" + one_of({"1", "2"}) + " parallelism.dp=" + one_of({"1", "2"}) + " " +
      one_of({"", "parallelism.pp=2 "}) + one_of({"", contiguous});
  const int kind = number(0, 3);
  if (kind == 0) return overrides + gather + sparse + keys;
  if (kind == 1) {
    return overrides + gather + compressed + "model.window=" + keys +
           " model.compressed_attention.heavy_ratio=" + one_of({"2", "4", "8"}) +
           " model.compressed_attention.sparse_ratio=" + one_of({"2", "4"}) +
           " model.compressed_attention.index_top_k=" + one_of({"1", "3", "16"}) + " model.layer_types=[" +
           one_of({"sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention"}) + "," +
           one_of({"sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention"}) + "]";
  }
  overrides += one_of({gather, "", "parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 "});
  return overrides + "model.window=" + keys + " model.attention_chunk=" + keys + " model.layer_types=[" +
         one_of({"sliding_attention", "chunked_attention"}) + "," +
         one_of({"sliding_attention", "chunked_attention", "full_attention"}) + "]";
}

TEST(ContextFold, AtRandomIsTheUnfoldedStep) {
  std::mt19937_64 random(20261126);
  int partly = 0, valid = 0;
  for (int draw = 0; draw < 80; ++draw) {
    const std::string overrides = drawn(random);
    SCOPED_TRACE(overrides);
    Scenario scenario;
    try {
      scenario = tiny_cluster(words(overrides));
    } catch (const InputError&) {
      continue;  // a ring of one group, or more groups than heads
    }
    ++valid;
    const std::size_t found = expect_equal_when_folded(scenario);
    if (HasFailure()) return;
    const auto stages = static_cast<std::size_t>(scenario.parallelism.pp);
    if (found > stages && found < stages * static_cast<std::size_t>(scenario.parallelism.cp)) ++partly;
  }
  EXPECT_GE(valid, 50);
  EXPECT_GE(partly, 8);
}

}  // namespace
}  // namespace tandem::studies::context_fold_test
