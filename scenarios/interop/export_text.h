#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/interop/interop.h"

namespace tandem::scenarios {

/// Collects the lines of a text for another program, in the order in which they are added. `#` begins a comment in all of them.
class ExportText {
 public:
  void line(const std::string& text) { text_ += text + "\n"; }
  void comment(const std::string& text) { line("# " + text); }
  /// Adds an empty line and a comment, unless nothing follows before the next heading.
  void heading(const std::string& text) { heading_ = text; }
  void add(const std::string& text);
  void lose(std::string field, std::string why) { lost_.push_back({std::move(field), std::move(why)}); }

  /// Returns the whole text, with what was lost at the end.
  Exported take();

 private:
  std::string text_;
  std::string heading_;
  std::vector<Lost> lost_;
};

}  // namespace tandem::scenarios
