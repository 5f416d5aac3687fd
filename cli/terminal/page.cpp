#include "cli/terminal/page.h"

#include "runtime/base/printable.h"

namespace tandem::cli {

Page& Page::line(const std::string& text, Style style, std::size_t indent) {
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
  text_ += '\n';
  return *this;
}

Page& Page::table(const Table& table) {
  text_ += table.text(screen_);
  return *this;
}

}  // namespace tandem::cli
