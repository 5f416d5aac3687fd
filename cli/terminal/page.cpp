#include "cli/terminal/page.h"

#include "cli/terminal/markdown.h"
#include "runtime/base/printable.h"

namespace tandem::cli {

Page& Page::heading(const std::string& text) {
  if (!screen_.markdown) return empty_line().line(text, Style::strong);
  empty_line();
  text_ += "#### " + markdown_of(printable(text)) + "\n";
  return *this;
}

Page& Page::line(const std::string& text, Style style, std::size_t indent) {
  if (screen_.markdown) {
    const std::string escaped = markdown_of(printable(text));
    empty_line();
    text_ += style == Style::strong ? "**" + escaped + "**\n" : escaped + "\n";
    return *this;
  }
  constexpr std::size_t hanging = 2;
  const std::size_t taken = indent + hanging;
  std::size_t spaces = indent;
  for (const std::string& part : wrapped(printable(text), screen_.width > taken ? screen_.width - taken : 1)) {
    text_ += std::string(spaces, ' ') + painted(part, style, screen_) + '\n';
    spaces = taken;
  }
  return *this;
}

Page& Page::empty_line() {
  const bool is_there = text_.empty() || text_.ends_with("\n\n");
  if (!screen_.markdown || !is_there) text_ += '\n';
  return *this;
}

Page& Page::table(const Table& table) {
  if (screen_.markdown) empty_line();
  text_ += table.text(screen_);
  return *this;
}

}  // namespace tandem::cli
