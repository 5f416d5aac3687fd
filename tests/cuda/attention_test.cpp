#include <gtest/gtest.h>

#include <random>

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
    ASSERT_EQ(shape.visibility(first_query, end_query, first_key, end_key), expected) << "trial " << trial;
    ++met[static_cast<std::size_t>(expected)];
  }
  for (const int count : met) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace tandem::studies::attention_test
