#include "runtime/dag/buffers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace tandem::buffers_test {
namespace {

/// A buffer that may come at `id`, of few shapes; a view of an earlier one in one case of three.
Buffer drawn_buffer(std::mt19937& random, const std::vector<Buffer>& before) {
  const auto from_0_to = [&](std::uint32_t last) { return std::uniform_int_distribution<std::uint32_t>(0, last)(random); };
  const auto id = static_cast<BufferId>(before.size());
  if (id > 0 && from_0_to(2) == 0) {
    Buffer view = before[from_0_to(id - 1)];
    view.offset += from_0_to(3);
    view.shape = Shape(from_0_to(2) + 1);
    return view;
  }
  return {.shape = Shape(8 + from_0_to(2), 16),
          .dtype = from_0_to(1) == 0 ? DType::bf16 : DType::f8,
          .scaling = from_0_to(1) == 0 ? Scaling::none : Scaling::blocks_16,
          .kind = static_cast<BufferKind>(from_0_to(static_cast<std::uint32_t>(BufferKind::host))),
          .rank = from_0_to(1),
          .base = id,
          .offset = 0};
}

void expect_same(const Buffers& buffers, const std::vector<Buffer>& expected) {
  ASSERT_EQ(buffers.size(), expected.size());
  BufferId id = 0;
  for (const Buffer& buffer : buffers) {
    ASSERT_TRUE(buffer == expected[id]) << id;
    ASSERT_TRUE(buffers[id] == expected[id]) << id;
    ++id;
  }
}

// What is kept is a number for each; what comes out is what was put in.
TEST(Buffers, AreThoseThatWerePutIn) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Buffers buffers;
    std::vector<Buffer> expected;
    for (int i = 0; i < 200; ++i) buffers.push_back(expected.emplace_back(drawn_buffer(random, expected)));
    for (int i = 0; i < 20; ++i) {
      const BufferId id = random() % 200;
      buffers.set(id, expected[id] = drawn_buffer(random, {expected.begin(), expected.begin() + id}));
    }
    expect_same(buffers, expected);
  }
}

TEST(Buffers, AppendedHaveBasesAmongAll) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Buffers all;
    std::vector<Buffer> expected;
    for (int part = 0; part < 4; ++part) {
      Buffers buffers;
      std::vector<Buffer> own;
      for (int i = 0; i < 50; ++i) buffers.push_back(own.emplace_back(drawn_buffer(random, own)));
      for (Buffer& buffer : own) buffer.base += static_cast<BufferId>(expected.size());
      expected.insert(expected.end(), own.begin(), own.end());
      all.append(buffers);
    }
    expect_same(all, expected);
  }
}

TEST(Buffers, AreNoneWhenCleared) {
  Buffers buffers;
  buffers.push_back({.shape = Shape(2)});
  buffers.clear();
  EXPECT_EQ(buffers.size(), 0U);
  buffers.push_back({.shape = Shape(3)});
  EXPECT_TRUE(buffers[0] == Buffer{.shape = Shape(3)});
}

}  // namespace
}  // namespace tandem::buffers_test
