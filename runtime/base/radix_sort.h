#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tandem {

/// Sorts by a whole number that `key` gives for each item; equal ones stay in their order. Digit by digit, the lowest first,
/// without comparisons, half of which a processor would guess wrong: for thousands of items and more, and fewer than 2^32.
template <typename Item, typename Key>
void radix_sort(std::vector<Item>& items, const Key& key) {
  constexpr unsigned most_bits = 13;  // of a digit, whose counts stay in the first cache
  if (items.empty()) return;
  std::uint64_t differing = 0;
  for (const Item& item : items) differing |= key(item) ^ key(items.front());
  const auto width = static_cast<unsigned>(std::bit_width(differing));
  const unsigned rounds = (width + most_bits - 1) / most_bits;
  const unsigned bits = rounds == 0 ? 0 : (width + rounds - 1) / rounds;
  std::vector<Item> sorted(items.size());
  std::vector<std::uint32_t> next(std::size_t{1} << bits);
  for (unsigned round = 0; round < rounds; ++round) {
    const auto digit = [&](const Item& item) { return key(item) >> round * bits & (next.size() - 1); };
    std::ranges::fill(next, 0);
    for (const Item& item : items) ++next[digit(item)];
    std::uint32_t begin = 0;
    for (std::uint32_t& place : next) begin += std::exchange(place, begin);
    for (Item& item : items) sorted[next[digit(item)]++] = std::move(item);
    items.swap(sorted);
  }
}

}  // namespace tandem
