#include "runtime/base/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

namespace tandem::radix_sort_test {
namespace {

using Item = std::pair<std::uint64_t, std::size_t>;  // key, and place before

TEST(RadixSort, IsAStableSort) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0, 1, 2, 100, 5000}) {
    for (const unsigned bits : {0, 1, 5, 11, 12, 33, 63, 64}) {
      const std::uint64_t above = random();  // which all keys have in common
      std::vector<Item> items;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
        items.emplace_back((above & ~mask) | (random() & mask), i);
      }
      std::vector<Item> expected = items;
      std::ranges::stable_sort(expected, {}, &Item::first);
      radix_sort(items, [](const Item& item) { return item.first; });
      EXPECT_EQ(items, expected) << count << " keys of " << bits << " bits";
    }
  }
}

TEST(RadixSort, MovesWhatCannotBeCopied) {
  std::vector<std::pair<std::uint64_t, std::unique_ptr<int>>> items;
  for (const int i : {3, 1, 2}) items.emplace_back(i, std::make_unique<int>(i));
  radix_sort(items, [](const auto& item) { return item.first; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*items[static_cast<std::size_t>(i)].second, i + 1);
}

}  // namespace
}  // namespace tandem::radix_sort_test
