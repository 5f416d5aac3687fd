#include "cli/terminal/markdown.h"

namespace tandem::cli {

std::string markdown_of(std::string_view text) {
  constexpr std::string_view markup = "\\`*_[]|~#";
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins_item = i == 0 && (c == '-' || c == '+') && text.substr(1).starts_with(' ');
    if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '&')
      escaped += "&amp;";
    else if (c == '@')
      escaped += "@<!-- -->";
    else if (begins_item || markup.find(c) != std::string_view::npos)
      escaped += std::string("\\") + c;
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace tandem::cli
