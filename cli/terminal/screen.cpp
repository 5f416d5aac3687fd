#include "cli/terminal/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tandem::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::size_t width_of(int terminal) {
  const std::string_view wanted = variable("COLUMNS");
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), width);
  if (error == std::errc{} && end == wanted.data() + wanted.size() && width > 0) return width;
  constexpr std::size_t usual = 80;
  winsize size{};
  return ::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

const char* code_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::strong:
      return "1";
    case Style::faint:
      return "2";
    case Style::red:
      return "31";
    case Style::green:
      return "32";
    case Style::yellow:
      return "33";
    case Style::magenta:
      return "35";
    case Style::cyan:
      return "36";
  }
  return "";
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

Screen screen_on(int descriptor) {
  if (::isatty(descriptor) != 1) return {};
  const std::string_view kind = variable("TERM");
  return {.width = width_of(descriptor), .coloured = variable("NO_COLOR").empty() && !kind.empty() && kind != "dumb"};
}

std::string painted(std::string_view text, Style style, const Screen& screen) {
  if (!screen.coloured || style == Style::plain || text.empty()) return std::string(text);
  return std::string("\x1b[") + code_of(style) + "m" + std::string(text) + "\x1b[0m";
}

std::size_t columns_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

std::string shortened(const std::string& text, std::size_t width) {
  constexpr std::string_view rest = "...";
  if (columns_of(text) <= width) return text;
  const std::size_t kept = width > rest.size() ? width - rest.size() : 0;
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && columns++ == kept) break;
  }
  while (end > 0 && text[end - 1] == ' ') --end;
  return text.substr(0, end) + std::string(rest.substr(0, width));
}

}  // namespace tandem::cli
