#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/base/hash.h"

namespace tandem {

/// Values that differ, numbered from 0 on in the order in which they first came. `Hash` makes 64 bits of a value.
template <typename T, typename Hash>
class Numbered {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::size_t size() const { return values_.size(); }
  const T& operator[](std::uint32_t number) const { return values_[number]; }
  const std::vector<T>& values() const { return values_; }

  /// Returns the number of a value, which comes after the one of number `before`, or `none`: it is looked for first where the
  /// next one was last time.
  std::uint32_t number_of(const T& value, std::uint32_t before = none) {
    const std::uint32_t likely = before == none ? none : after_[before];
    if (likely != none && values_[likely] == value) return likely;
    const std::uint32_t number = find_or_add(value);
    if (before != none) after_[before] = number;
    return number;
  }

  void clear() {
    values_.clear();
    after_.clear();
    table_.assign(table_.size(), none);
  }

 private:
  std::vector<T> values_;
  std::vector<std::uint32_t> after_;  ///< by number, the one that came after it last
  std::vector<std::uint32_t> table_;  ///< by hash, the next free place; a power of two, at most half full

  std::uint32_t& place_of(const T& value) {
    const std::size_t mask = table_.size() - 1;
    std::size_t place = hash(Hash()(value)) & mask;
    while (table_[place] != none && !(values_[table_[place]] == value)) place = (place + 1) & mask;
    return table_[place];
  }
  std::uint32_t find_or_add(const T& value) {
    if (2 * values_.size() >= table_.size()) grow();
    std::uint32_t& number = place_of(value);
    if (number == none) {
      number = static_cast<std::uint32_t>(values_.size());
      values_.push_back(value);
      after_.push_back(none);
    }
    return number;
  }
  void grow() {
    constexpr std::size_t fewest = 64;
    table_.assign(table_.empty() ? fewest : 2 * table_.size(), none);
    for (std::uint32_t number = 0; number < values_.size(); ++number) place_of(values_[number]) = number;
  }
};

}  // namespace tandem
