#include "runtime/base/large_pages.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tandem::large_pages_test {
namespace {

TEST(LargePages, LeaveWhatIsThere) {
  std::vector<int> items(3'000'000);
  std::iota(items.begin(), items.end(), 0);
  for (const std::size_t first : {0, 1, 12'345}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, std::size_t{5} << 20})
      prefer_large_pages(items.data() + first, bytes);
  }
  for (int i = 0; i < 3'000'000; ++i) ASSERT_EQ(items[static_cast<std::size_t>(i)], i);
}

TEST(LargePages, AreNoneOfNothing) { prefer_large_pages(nullptr, 0); }

TEST(LargePages, OfTheHeapAreMemoryLikeAnyOther) {
  prefer_large_pages_for_heap(std::size_t{8} << 20);
  std::vector<std::vector<std::size_t>> pieces;
  for (std::size_t i = 0; i < 1000; ++i) pieces.emplace_back(i, i);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(pieces[i], std::vector<std::size_t>(i, i));
}

}  // namespace
}  // namespace tandem::large_pages_test
