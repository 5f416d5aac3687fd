#include "scenarios/shell/patterns.h"

#include <vector>

namespace tandem::scenarios::shell {
namespace {

/// A set such as [a-z]: whether `c` is in it, and how long it is; length 0 where nothing closes it.
struct SetMatch {
  bool in = false;
  std::size_t length = 0;
};
SetMatch match_set(std::string_view pattern, char c) {
  std::size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  bool in = false;
  for (bool first = true; at < pattern.size(); first = false) {
    if (pattern[at] == ']' && !first) return {in != negated, at + 1};
    char low = pattern[at];
    if (low == '\\' && at + 1 < pattern.size()) low = pattern[++at];
    char high = low;
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      high = pattern[at + 2];
      at += 2;
    }
    in = in || (low <= c && c <= high);
    ++at;
  }
  return {};
}

/// Whether a pattern's first sign is one character's, and that of `c`.
SetMatch match_one(std::string_view pattern, char c) {
  if (pattern.front() == '?') return {true, 1};
  if (pattern.front() == '\\' && pattern.size() > 1) return {pattern[1] == c, 2};
  if (pattern.front() == '[')
    if (const SetMatch set = match_set(pattern, c); set.length > 0) return set;
  return {pattern.front() == c, 1};
}

}  // namespace

bool matches_pattern(std::string_view text, std::string_view pattern) {
  // Linear in memory: after a star, only the last one is tried again.
  std::size_t at = 0, in = 0, star = std::string_view::npos, from = 0;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      from = at;
      continue;
    }
    if (in < pattern.size()) {
      if (const SetMatch one = match_one(pattern.substr(in), text[at]); one.in) {
        in += one.length;
        ++at;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    in = star + 1;
    at = ++from;
  }
  while (in < pattern.size() && pattern[in] == '*') ++in;
  return in == pattern.size();
}

std::string without_prefix(const std::string& text, std::string_view pattern, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? text.size() - i : i;
    if (matches_pattern(std::string_view(text).substr(0, length), pattern)) return text.substr(length);
  }
  return text;
}

std::string without_suffix(const std::string& text, std::string_view pattern, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? i : text.size() - i;
    if (matches_pattern(std::string_view(text).substr(length), pattern)) return text.substr(0, length);
  }
  return text;
}

std::string with_replaced(const std::string& text, std::string_view pattern, std::string_view replacement, bool all) {
  if (pattern.empty()) return text;
  std::string result;
  std::size_t at = 0;
  bool done = false;
  while (at < text.size()) {
    std::size_t length = 0;
    for (std::size_t longest = text.size() - at; longest > 0 && length == 0 && !done; --longest)
      if (matches_pattern(std::string_view(text).substr(at, longest), pattern)) length = longest;
    if (length == 0) {
      result += text[at++];
      continue;
    }
    result += replacement;
    at += length;
    done = !all;
  }
  return result;
}

}  // namespace tandem::scenarios::shell
