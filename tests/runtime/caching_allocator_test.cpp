#include "runtime/analysis/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

namespace tandem::caching_allocator_test {
namespace {

constexpr Bytes kibi = 1024, mebi = 1024 * kibi;

/// What the first allocation of so many bytes takes from the device.
Bytes segment_of(Bytes bytes) {
  CachingAllocator allocator;
  allocator.allocate(bytes);
  return allocator.reserved();
}

TEST(CachingAllocator, SegmentsBySize) {
  EXPECT_EQ(segment_of(1), 2 * mebi);
  EXPECT_EQ(segment_of(mebi), 2 * mebi);
  EXPECT_EQ(segment_of(mebi + 1), 20 * mebi);
  EXPECT_EQ(segment_of(10 * mebi - 1024), 20 * mebi);
  EXPECT_EQ(segment_of(10 * mebi), 10 * mebi);
  EXPECT_EQ(segment_of(10 * mebi + 1), 12 * mebi);
  EXPECT_EQ(segment_of(1000 * mebi + 1), 1002 * mebi);
}

TEST(CachingAllocator, RoundsToMultiplesOf512) {
  CachingAllocator allocator;
  allocator.allocate(1);
  EXPECT_EQ(allocator.allocated(), 512);
  allocator.allocate(512);
  EXPECT_EQ(allocator.allocated(), 1024);
  allocator.allocate(513);
  EXPECT_EQ(allocator.allocated(), 2048);
}

TEST(CachingAllocator, ALargeBlockKeepsARestOfAMebibyte) {
  CachingAllocator allocator;
  allocator.allocate(11 * mebi);  // of 12
  EXPECT_EQ(allocator.allocated(), 12 * mebi);
  allocator.allocate(13 * mebi - 512);  // of 14, a rest of more than 1 MiB is free
  EXPECT_EQ(allocator.allocated(), 25 * mebi - 512);
}

TEST(CachingAllocator, FillsASegmentBeforeItTakesAnother) {
  CachingAllocator allocator;
  for (int i = 0; i < 2; ++i) allocator.allocate(mebi);
  EXPECT_EQ(allocator.segments(), 1U);
  allocator.allocate(mebi);
  EXPECT_EQ(allocator.segments(), 2U);
  allocator.allocate(2 * mebi);  // large blocks have a pool of their own
  EXPECT_EQ(allocator.segments(), 3U);
  for (int i = 0; i < 9; ++i) allocator.allocate(2 * mebi);
  EXPECT_EQ(allocator.segments(), 3U);
  EXPECT_EQ(allocator.reserved(), 24 * mebi);
}

TEST(CachingAllocator, StreamsShareNothing) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(100 * mebi, 0));
  allocator.allocate(100 * mebi, 1);
  EXPECT_EQ(allocator.reserved(), 200 * mebi);
  allocator.allocate(100 * mebi, 0);
  EXPECT_EQ(allocator.reserved(), 200 * mebi);
}

TEST(CachingAllocator, TakesTheSmallestThatFits) {
  CachingAllocator allocator;
  const auto large = allocator.allocate(100 * mebi);
  const auto fitting = allocator.allocate(60 * mebi);
  allocator.free(large);
  allocator.free(fitting);
  allocator.allocate(50 * mebi);  // of the 60, so that 100 stay whole
  allocator.allocate(100 * mebi);
  EXPECT_EQ(allocator.reserved(), 160 * mebi);
}

TEST(CachingAllocator, FreeNeighboursMerge) {
  CachingAllocator allocator;
  const auto whole = allocator.allocate(90 * mebi);
  allocator.free(whole);
  const auto a = allocator.allocate(30 * mebi), b = allocator.allocate(30 * mebi), c = allocator.allocate(30 * mebi);
  allocator.free(a);
  allocator.free(c);
  allocator.allocate(60 * mebi);  // between them lies one in use
  EXPECT_EQ(allocator.reserved(), 150 * mebi);
  allocator.free(b);
  allocator.allocate(90 * mebi);
  EXPECT_EQ(allocator.reserved(), 150 * mebi);
}

TEST(CachingAllocator, AFragmentedSegmentTakesMoreThanIsAllocated) {
  for (const bool expandable : {false, true}) {
    CachingAllocator allocator({.expandable_segments = expandable});
    std::vector<CachingAllocator::Handle> handles;
    for (int i = 0; i < 10; ++i) handles.push_back(allocator.allocate(40 * mebi));
    for (int i = 0; i < 10; i += 2) allocator.free(handles[static_cast<std::size_t>(i)]);
    allocator.allocate(80 * mebi);  // 200 MiB are free, in holes of 40
    EXPECT_EQ(allocator.allocated(), 280 * mebi);
    EXPECT_EQ(allocator.reserved(), 480 * mebi);
  }
}

TEST(CachingAllocator, AnExpandableSegmentGrowsByPagesAndIsReusedWhole) {
  CachingAllocator allocator({.expandable_segments = true});
  const auto small = allocator.allocate(30 * mebi);
  EXPECT_EQ(allocator.reserved(), 40 * mebi);
  allocator.free(small);
  const auto larger = allocator.allocate(50 * mebi);  // the page that is there, and one more
  EXPECT_EQ(allocator.reserved(), 60 * mebi);
  allocator.free(larger);
  CachingAllocator rigid;
  rigid.free(rigid.allocate(30 * mebi));
  rigid.allocate(50 * mebi);
  EXPECT_EQ(rigid.reserved(), 80 * mebi);
}

TEST(CachingAllocator, TheEndOfAnExpandableSegmentIsTakenLast) {
  CachingAllocator allocator({.expandable_segments = true});
  const auto hole = allocator.allocate(100 * mebi);
  allocator.allocate(20 * mebi);
  const auto end = allocator.allocate(60 * mebi);
  allocator.free(hole);
  allocator.free(end);
  const auto in_hole = allocator.allocate(60 * mebi);  // not at the end, though it fits there
  allocator.allocate(100 * mebi);                      // so the end has 60 of them
  EXPECT_EQ(allocator.reserved(), 220 * mebi);
  allocator.free(in_hole);
}

TEST(CachingAllocator, GivesUnusedSegmentsBackBeforeItExceedsTheDevice) {
  CachingAllocator allocator({.capacity = 200 * mebi});
  const auto first = allocator.allocate(100 * mebi);
  allocator.allocate(20 * mebi);
  allocator.free(first);
  allocator.allocate(150 * mebi);
  EXPECT_EQ(allocator.reserved(), 170 * mebi);
  EXPECT_FALSE(allocator.exceeded());
  EXPECT_EQ(allocator.peak_reserved(), 170 * mebi);
  EXPECT_EQ(allocator.retries(), 1U);
  allocator.allocate(100 * mebi);
  EXPECT_TRUE(allocator.exceeded());
  EXPECT_EQ(allocator.retries(), 2U);
}

TEST(CachingAllocator, ASegmentWithABlockInUseIsNotGivenBack) {
  CachingAllocator allocator({.capacity = 100 * mebi});
  const auto whole = allocator.allocate(60 * mebi);
  allocator.free(whole);
  allocator.allocate(20 * mebi);  // of the 60
  allocator.allocate(50 * mebi);
  EXPECT_TRUE(allocator.exceeded());
  EXPECT_EQ(allocator.reserved(), 110 * mebi);
}

/// The same with expandable segments, whose free pages are given back wherever they lie.
TEST(CachingAllocator, GivesPagesBackBetweenBlocksInUse) {
  CachingAllocator allocator({.expandable_segments = true, .capacity = 200 * mebi});
  allocator.allocate(25 * mebi);
  const auto hole = allocator.allocate(70 * mebi);  // from 25 to 95: pages from 40 to 80
  allocator.allocate(25 * mebi);
  EXPECT_EQ(allocator.reserved(), 120 * mebi);
  allocator.free(hole);
  allocator.allocate(110 * mebi);  // 120 are mapped, 80 remain, and 40 come back
  EXPECT_FALSE(allocator.exceeded());
  EXPECT_EQ(allocator.retries(), 1U);
  EXPECT_EQ(allocator.reserved(), 200 * mebi);
  allocator.allocate(15 * mebi);  // at either end of the hole 15 are left
  allocator.allocate(15 * mebi);
  EXPECT_EQ(allocator.retries(), 1U);
  allocator.allocate(15 * mebi);
  EXPECT_TRUE(allocator.exceeded());
}

TEST(CachingAllocator, RefusesToFreeTwice) {
  CachingAllocator allocator;
  const auto block = allocator.allocate(100);
  allocator.free(block);
  EXPECT_THROW(allocator.free(block), std::logic_error);
  EXPECT_THROW(allocator.free(1000), std::logic_error);
}

/// Whatever is allocated and freed: what is reserved holds what is allocated, that is what was asked for and its rounding. On a
/// device with room for all of it nothing is given back; on a small one no more is taken than there is, unless it is exceeded.
TEST(CachingAllocator, KeepsItsBooksOnRandomSteps) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const bool ample = seed % 4 < 2;
    const Bytes capacity = ample ? std::numeric_limits<Bytes>::max() : 300 * mebi;
    CachingAllocator allocator({.expandable_segments = seed % 2 == 1, .capacity = capacity});
    std::map<CachingAllocator::Handle, Bytes> live;
    Bytes asked = 0, most_asked = 0;
    const auto free_one = [&](std::size_t index) {
      const auto block = std::next(live.begin(), static_cast<std::ptrdiff_t>(index));
      allocator.free(block->first);
      asked -= block->second;
      live.erase(block);
    };
    for (int i = 0; i < 400; ++i) {
      if (!live.empty() && random() % 5 < 2) {
        free_one(random() % live.size());
        continue;
      }
      const Bytes bytes = 1 + static_cast<Bytes>(random() % (Bytes{1} << (random() % 27)));
      const auto handle = allocator.allocate(bytes, static_cast<std::uint32_t>(random() % 2));
      EXPECT_TRUE(live.emplace(handle, bytes).second);
      asked += bytes;
      most_asked = std::max(most_asked, asked);
      ASSERT_GE(allocator.allocated(), asked);
      ASSERT_LE(allocator.allocated(), asked + static_cast<Bytes>(live.size()) * (mebi + 512));
      ASSERT_GE(allocator.reserved(), allocator.allocated());
      ASSERT_EQ(allocator.peak_reserved() > capacity, allocator.exceeded());
    }
    while (!live.empty()) free_one(random() % live.size());
    EXPECT_EQ(allocator.allocated(), 0);
    EXPECT_GE(allocator.peak_allocated(), most_asked);
    if (!ample) continue;
    EXPECT_EQ(allocator.retries(), 0U);
    EXPECT_EQ(allocator.peak_reserved(), allocator.reserved());
    const Bytes before = allocator.reserved();
    const std::size_t segments = allocator.segments();
    const auto largest = allocator.allocate(mebi);  // every segment is whole again
    EXPECT_LE(allocator.reserved(), before + 2 * mebi);
    EXPECT_LE(allocator.segments(), segments + 1);
    allocator.free(largest);
  }
}

}  // namespace
}  // namespace tandem::caching_allocator_test
