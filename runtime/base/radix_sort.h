#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tandem {

/// Sorts by a whole number that `key` gives for each item; equal ones stay in their order. Digit by digit, the lowest first,
/// without comparisons, half of which a processor would guess wrong: for thousands of items and more.
template <typename Item, typename Key>
void radix_sort(std::vector<Item>& items, const Key& key) {
  constexpr unsigned bits = 11;  // of a digit, whose counts stay in the first cache
  constexpr std::uint64_t digits = std::uint64_t{1} << bits;
  if (items.empty()) return;
  std::uint64_t differing = 0;
  for (const Item& item : items) differing |= key(item) ^ key(items.front());
  std::vector<Item> sorted(items.size());
  for (unsigned shift = 0; shift < 64 && differing >> shift != 0; shift += bits) {
    const auto digit = [&](const Item& item) { return (key(item) >> shift) % digits; };
    std::array<std::size_t, digits> next{};
    for (const Item& item : items) ++next[digit(item)];
    std::size_t begin = 0;
    for (std::size_t& place : next) begin += std::exchange(place, begin);
    for (Item& item : items) sorted[next[digit(item)]++] = std::move(item);
    items.swap(sorted);
  }
}

}  // namespace tandem
