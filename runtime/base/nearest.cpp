#include "runtime/base/nearest.h"

#include <algorithm>
#include <numeric>

namespace tandem {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t longest_name = 100;
  if (name.size() > longest_name) return {};
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best && distance < std::max(name.size(), candidate.size())) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  const std::string near = nearest(name, candidates);
  return near.empty() ? "; expected one of: " + joined(candidates) : "; did you mean `" + near + "`?";
}

std::vector<std::int64_t> nearest_divisors(std::int64_t number, std::int64_t value) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = std::min(value, number); d >= 1; --d)
    if (number % d == 0) {
      found.push_back(d);
      break;
    }
  for (std::int64_t d = value + 1; d <= number; ++d)
    if (number % d == 0) {
      found.push_back(d);
      break;
    }
  return found;
}

std::vector<std::int64_t> nearest_multiples(std::int64_t unit, std::int64_t value) {
  const std::int64_t below = value / unit * unit;
  if (below == 0) return {unit};
  return {below, below + unit};
}

std::string joined(std::span<const std::string> values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

std::string joined(std::span<const std::int64_t> values) {
  std::vector<std::string> texts;
  for (const std::int64_t value : values) texts.push_back(std::to_string(value));
  return joined(texts);
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t first_digit = value < 0 ? 1 : 0;
  for (std::size_t end = text.size(); end > first_digit + 3;) text.insert(end -= 3, 1, ',');
  return text;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 60;
  constexpr auto continues_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  std::size_t length = std::min(text.size(), longest);
  while (length < text.size() && length > 0 && continues_character(text[length])) --length;
  std::string shown(text.substr(0, length));
  std::ranges::replace_if(
      shown, [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7F; }, ' ');
  if (length < text.size()) shown += "...";
  shown.insert(shown.begin(), '`');
  shown += '`';
  return shown;
}

}  // namespace tandem
