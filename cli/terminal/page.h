#pragma once

#include <string>

#include "cli/terminal/table.h"

namespace tandem::cli {

/// A text for one screen, or in Markdown, put together from lines and tables.
class Page {
 public:
  explicit Page(const Screen& screen) : screen_(screen) {}

  /// A line at the left edge, or `indent` columns from it. What does not fit goes on in the next line, two columns further in.
  Page& line(const std::string& text, Style style = Style::plain, std::size_t indent = 0);
  /// A line after an empty one.
  Page& heading(const std::string& text);
  Page& empty_line();
  Page& table(const Table& table);

  const std::string& text() const { return text_; }

 private:
  Screen screen_;
  std::string text_;
};

}  // namespace tandem::cli
