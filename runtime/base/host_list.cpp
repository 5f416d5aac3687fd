#include "runtime/base/host_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>

#include "runtime/base/nearest.h"

namespace tandem {
namespace {

constexpr std::size_t most_hosts = 1'048'576;
constexpr std::size_t most_digits = 18;  // of a number that 64 bits hold

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool separates(char c) { return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// Reads the items of a host list, which commas and spaces outside brackets separate.
class HostListReader {
 public:
  HostListReader(std::string_view list, const Place& place) : list_(list), place_(place) {}

  std::vector<std::string> read() && {
    std::size_t begin = 0;
    bool is_open = false;
    for (std::size_t at = 0; at < list_.size(); ++at) {
      const char c = list_[at];
      if (c == '[' && std::exchange(is_open, true)) fail("has a bracket within a bracket, expected numbers and ranges there");
      if (c == ']' && !std::exchange(is_open, false))
        fail("closes a bracket that nothing opens, expected names such as tux[0-3,12]");
      if (is_open || !separates(c)) continue;
      if (at > begin) add(list_.substr(begin, at - begin));
      begin = at + 1;
    }
    if (is_open) fail("has a bracket that is not closed, expected names such as tux[0-3,12]");
    if (begin < list_.size()) add(list_.substr(begin));
    return std::move(names_);
  }

 private:
  std::string_view list_;
  Place place_;
  std::vector<std::string> names_;

  [[noreturn]] void fail(const std::string& sentence) const {
    throw InputError(place_, "the host list " + excerpt(list_) + " " + sentence);
  }

  std::int64_t number(std::string_view digits) const {
    std::int64_t value = 0;
    const bool only_digits = !digits.empty() && std::ranges::all_of(digits, is_digit) && digits.size() <= most_digits;
    if (!only_digits) fail("has " + excerpt(digits) + " in a bracket, expected whole numbers and ranges such as 0-3");
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  /// Appends what a bracket stands for to every name so far.
  void multiply(std::vector<std::string>& names, std::string_view bracket) const {
    std::vector<std::string> longer;
    std::vector<std::string> numbers;
    for (std::size_t begin = 0; begin <= bracket.size();) {
      const std::size_t end = std::min(bracket.find(',', begin), bracket.size());
      const std::string_view item = bracket.substr(begin, end - begin);
      const std::size_t dash = item.find('-');
      const std::string_view from = item.substr(0, dash), to = dash == std::string_view::npos ? from : item.substr(dash + 1);
      const std::int64_t first = number(from), last = number(to);
      if (last < first) fail("has the range " + excerpt(item) + ", which goes down; expected the smaller number first");
      if (static_cast<std::uint64_t>(last - first) >= most_hosts) fail("stands for more than 1,048,576 names");
      for (std::int64_t n = first; n <= last; ++n) {
        std::string digits = std::to_string(n);
        if (digits.size() < from.size()) digits.insert(0, from.size() - digits.size(), '0');
        numbers.push_back(std::move(digits));
      }
      begin = end + 1;
    }
    if (names.size() * numbers.size() > most_hosts) fail("stands for more than 1,048,576 names");
    for (const std::string& name : names)
      for (const std::string& digits : numbers) longer.push_back(name + digits);
    names = std::move(longer);
  }

  void add(std::string_view item) {
    std::vector<std::string> names{""};
    while (!item.empty()) {
      const std::size_t open = std::min(item.find('['), item.size());
      for (std::string& name : names) name += item.substr(0, open);
      if (open == item.size()) break;
      const std::size_t close = item.find(']', open);
      multiply(names, item.substr(open + 1, close - open - 1));
      item.remove_prefix(close + 1);
    }
    if (names_.size() + names.size() > most_hosts) fail("stands for more than 1,048,576 names");
    std::ranges::move(names, std::back_inserter(names_));
  }
};

/// A name in three pieces: what stands before its last number, the number, what stands behind it.
struct NumberedName {
  std::string_view before, digits, behind;
  std::int64_t number = -1;  ///< -1: the name has none that a range could count
};

NumberedName split_at_number(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1]) && end - begin < most_digits) --begin;
  NumberedName split{name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
  if (begin == end) return split;
  std::from_chars(split.digits.data(), split.digits.data() + split.digits.size(), split.number);
  return split;
}

/// Whether a range that begins at `first` writes `next` as it is written: with the zeros of the first, or without any.
bool is_written_alike(const NumberedName& first, const NumberedName& next) {
  return next.digits.size() == std::max(first.digits.size(), std::to_string(next.number).size());
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list, const Place& place) {
  return HostListReader(list, place).read();
}

std::string host_list_of(std::span<const std::string> names) {
  std::string list;
  for (std::size_t begin = 0; begin < names.size();) {
    const NumberedName head = split_at_number(names[begin]);
    std::string ranges;
    std::size_t at = begin;
    while (head.number >= 0 && at < names.size()) {
      const NumberedName first = split_at_number(names[at]);
      if (first.before != head.before || first.behind != head.behind || first.number < 0) break;
      std::size_t end = at + 1;
      for (; end < names.size(); ++end) {
        const NumberedName next = split_at_number(names[end]);
        if (next.before != head.before || next.behind != head.behind) break;
        if (next.number != first.number + static_cast<std::int64_t>(end - at) || !is_written_alike(first, next)) break;
      }
      ranges += (ranges.empty() ? "" : ",") + std::string(first.digits);
      if (end > at + 1) ranges += "-" + std::string(split_at_number(names[end - 1]).digits);
      at = end;
    }
    list += begin == 0 ? "" : ",";
    if (at <= begin + 1) {
      list += names[begin++];
    } else {
      list += std::string(head.before) + "[" + ranges + "]" + std::string(head.behind);
      begin = at;
    }
  }
  return list;
}

bool comes_before(std::string_view one, std::string_view other) {
  std::size_t a = 0, b = 0;
  while (a < one.size() && b < other.size()) {
    if (!is_digit(one[a]) || !is_digit(other[b])) {
      if (one[a] != other[b]) return one[a] < other[b];
      ++a;
      ++b;
      continue;
    }
    const auto digits_from = [](std::string_view text, std::size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const std::size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view first = digits_from(one, a), second = digits_from(other, b);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
  }
  if (a < one.size() || b < other.size()) return a >= one.size();
  return one < other;  // n01 and n1
}

}  // namespace tandem
