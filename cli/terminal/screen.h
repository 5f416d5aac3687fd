#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace tandem::cli {

/// What a text is written for. A pipe or a file has room for everything and no colours, whatever the environment says, so that
/// what a program reads there is always the same.
struct Screen {
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  std::size_t width = unlimited;  ///< in columns
  bool coloured = false;
  bool markdown = false;  ///< no screen, but Markdown as GitHub reads it: tables are its tables, without bars
};

/// Returns the screen of an open file, standard output or error. On a terminal the width is COLUMNS, or what the terminal says,
/// or 80; colours are shown unless NO_COLOR is set to something (https://no-color.org) or TERM is dumb or missing.
Screen screen_on(int descriptor);

/// Colours are the terminal's own eight, which its user chose to be readable. No meaning rests on a colour alone.
enum class Style : std::uint8_t {
  plain,
  strong,
  faint,
  red,
  green,
  yellow,
  magenta,
  cyan
};

/// Puts `text` between escapes (ECMA-48, select graphic rendition) where the screen has colours.
std::string painted(std::string_view text, Style style, const Screen& screen);

/// Counts the columns that UTF-8 text takes, one for each character.
std::size_t columns_of(std::string_view text);

/// Cuts `text` to `width` columns, the last of which are "..." where something is left out.
std::string shortened(const std::string& text, std::size_t width);

}  // namespace tandem::cli
