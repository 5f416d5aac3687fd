#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/cuda/emulation/tensor_core.h"
#include "runtime/ops/attention_device.h"
#include "tests/cuda/emulated_runner.h"

namespace tandem::studies::attention_test {
namespace {

// The smallest and the largest positions tell of all pairs, as the mask compares positions.
TEST(AttentionMask, TellsOfBlocksWhatItTellsOfTheirPairs) {
  std::mt19937 generator(5);
  std::uniform_int_distribution<std::int32_t> start(0, 30), length(1, 9);
  const auto random_positions = [&] {
    return Positions{.start = {start(generator), start(generator)}, .length = {length(generator), length(generator)}};
  };
  std::array<int, 3> met{};
  for (int trial = 0; trial < 3000; ++trial) {
    const AttentionAttributes attributes{.queries = random_positions(), .keys = random_positions()};
    const std::int64_t s = attributes.queries.count(), t = attributes.keys.count();
    const AttentionSizes sizes(Shape(s, 1, 1, 8), Shape(t, 1, 1, 8), Shape(t, 1, 1, 8), Shape(s, 1, 1, 8), Shape(1, 1, s, 1),
                               attributes);
    const AttentionShape shape = shape_of(sizes, attributes);
    const auto part_of = [&](int count) {
      const int first = static_cast<int>(generator() % static_cast<unsigned>(count));
      return std::pair{first, first + 1 + static_cast<int>(generator() % static_cast<unsigned>(count - first))};
    };
    const auto [first_query, end_query] = part_of(shape.queries);
    const auto [first_key, end_key] = part_of(shape.keys);
    int seen = 0;
    for (int query = first_query; query < end_query; ++query)
      for (int key = first_key; key < end_key; ++key) seen += attributes.keys.at(key) <= attributes.queries.at(query);
    const Visibility expected = seen == 0                                                   ? Visibility::none
                                : seen == (end_query - first_query) * (end_key - first_key) ? Visibility::all
                                                                                            : Visibility::some;
    ASSERT_EQ(shape.visibility(0, first_query, end_query, first_key, end_key), expected) << "trial " << trial;
    ++met[static_cast<std::size_t>(expected)];
  }
  for (const int count : met) EXPECT_GT(count, 100);
}

/// A table of places, in the host's memory.
struct HostPlaces {
  std::vector<DocumentPlace> places;
  std::vector<PlaceSpan> spans;
  int count;

  HostPlaces(const Documents& documents, const Positions& positions, std::int64_t sequences)
      : places(places_of(documents, positions, sequences)), count(positions.count()) {
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence)
      for (int first = 0; first < count; first += places_per_span) {
        const auto at = [&](int i) {
          const DocumentPlace& p = places[static_cast<std::size_t>(sequence * count + i)];
          return PlaceSpan{p.document, p.document, p.token, p.token};
        };
        PlaceSpan span = at(first);
        for (int i = first + 1; i < std::min(first + places_per_span, count); ++i) span.add(at(i));
        spans.push_back(span);
      }
  }
  PlaceTable table() const { return {places.data(), spans.data(), count}; }
};

// Blocks that are skipped hold no pair that is seen, and blocks that are not masked no pair that is not; where a block is of one
// document the answer is exact.
TEST(AttentionMask, TellsOfBlocksOfDocumentsNothingWrong) {
  std::mt19937 generator(7);
  std::array<int, 3> met{};
  for (int trial = 0; trial < 300; ++trial) {
    Documents documents{.sequence = 256, .parts = trial % 2 == 0 ? 1 : 4};
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t at = 0; at < 256; at += documents.parts * (1 + generator() % 40))
        documents.starts.push_back(b * 256 + at);
    const AttentionAttributes attributes{.causal = trial % 3 != 0,
                                         .queries = {.start = {64, 128}, .length = {64, 64}},
                                         .keys = {.start = {0, 192}, .length = {128, 64}},
                                         .window = trial % 5 == 0 ? 20 : 0,
                                         .documents = documents};
    const AttentionSizes sizes(Shape(128, 2, 1, 8), Shape(192, 2, 1, 8), Shape(192, 2, 1, 8), Shape(128, 2, 1, 8),
                               Shape(2, 1, 128, 1), attributes);
    const HostPlaces queries(documents, attributes.queries, 2), keys(documents, attributes.keys, 2);
    const PackedAttentionShape shape{shape_of(sizes, attributes), queries.table(), keys.table()};
    for (int b = 0; b < 2; ++b)
      for (int first_query = 0; first_query < 128; first_query += 48)
        for (int first_key = 0; first_key < 192; first_key += 32) {
          const int end_query = std::min(first_query + 48, 128), end_key = first_key + 32;
          int seen = 0;
          for (int query = first_query; query < end_query; ++query)
            for (int key = first_key; key < end_key; ++key) seen += shape.sees(b, query, key) ? 1 : 0;
          const Visibility found = shape.visibility(b, first_query, end_query, first_key, end_key);
          if (found == Visibility::none) {
            ASSERT_EQ(seen, 0) << "trial " << trial;
          }
          if (found == Visibility::all) {
            ASSERT_EQ(seen, (end_query - first_query) * (end_key - first_key)) << "trial " << trial;
          }
          ++met[static_cast<std::size_t>(found)];
        }
  }
  for (const int count : met) EXPECT_GT(count, 5);
}

/// Returns how many products of tiles of 16 x 8 x 16 the operation takes, on one head and zeros.
std::int64_t tile_products_of(OpKind kind, std::int64_t positions, std::int64_t width) {
  const OperandType rows{Shape(positions, 1, 1, width), DType::bf16}, lse{Shape(1, 1, positions, 1), DType::f32};
  std::vector<OperandType> types{rows, rows, rows, rows, lse};
  if (kind == OpKind::attention_backward) types.insert(types.end(), 4, rows);
  std::vector<PlacedOperand> operands;
  for (const OperandType& type : types)
    operands.push_back({.type = type, .bytes = std::vector<std::byte>(static_cast<std::size_t>(type.bytes()))});
  const Positions all{.start = {0, 0}, .length = {static_cast<std::int32_t>(positions), 0}};
  const std::int64_t before = emulation::lanes_of_tile_products;
  EmulatedRunner().run(kind, AttentionAttributes{.causal = false, .scale = 1, .queries = all, .keys = all}, operands);
  return (emulation::lanes_of_tile_products - before) / emulation::warp_size;
}

// Where lengths are whole blocks and all keys are seen, every product is of so many tiles: q k^T and p v in the forward; q k^T,
// dout v^T, p^T dout, ds^T q and ds k in the backward, none of them twice.
TEST(OwnAttention, TakesTwoProductsAndFive) {
  struct Size {
    std::int64_t positions, width;  ///< blocks of 64 or 48 queries, and of 128 keys
  };
  for (const auto& [positions, width] : {Size{128, 64}, Size{384, 128}}) {
    const std::int64_t product = (positions / 16) * (positions / 8) * (width / 16);
    EXPECT_EQ(tile_products_of(OpKind::attention, positions, width), 2 * product) << "heads of " << width;
    EXPECT_EQ(tile_products_of(OpKind::attention_backward, positions, width), 5 * product) << "heads of " << width;
  }
}

}  // namespace
}  // namespace tandem::studies::attention_test
