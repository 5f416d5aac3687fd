#include "scenarios/interop/export_text.h"

#include <utility>

namespace tandem::scenarios {

void ExportText::add(const std::string& text) {
  if (!heading_.empty()) line("\n# " + std::exchange(heading_, ""));
  line(text);
}

Exported ExportText::take() {
  if (!lost_.empty()) line("\n# not expressed here:");
  for (const Lost& lost : lost_) comment(lost.field + ": " + lost.why);
  return {std::move(text_), std::move(lost_)};
}

}  // namespace tandem::scenarios
