#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace tandem {

/// ASCII letters in lower case; other characters as they are.
inline std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace tandem
