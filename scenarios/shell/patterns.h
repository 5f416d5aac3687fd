#pragma once

#include <string>
#include <string_view>

namespace tandem::scenarios::shell {

// Patterns of *, ? and [..], in which a backslash makes a sign stand for itself.

bool matches_pattern(std::string_view text, std::string_view pattern);

/// ${text#pattern}, ##, % and %%: without the shortest or longest prefix or suffix that matches.
std::string without_prefix(const std::string& text, std::string_view pattern, bool longest);
std::string without_suffix(const std::string& text, std::string_view pattern, bool longest);

/// ${text/pattern/replacement} and //: the first or all of the longest parts that match, none of them empty.
std::string with_replaced(const std::string& text, std::string_view pattern, std::string_view replacement, bool all);

}  // namespace tandem::scenarios::shell
