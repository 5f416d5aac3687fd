#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/ops/attention_device.h"

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

}  // namespace
}  // namespace tandem::studies::attention_test
