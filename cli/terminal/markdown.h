#pragma once

#include <string>
#include <string_view>

namespace tandem::cli {

/// Returns the text such that Markdown, as GitHub reads it, shows just that: what would be markup is escaped, also HTML, and '@'
/// makes no mention of anybody. A path or name of the input may hold any of it.
std::string markdown_of(std::string_view text);

}  // namespace tandem::cli
