#include "runtime/base/printable.h"

#include <algorithm>
#include <cctype>

namespace tandem {

std::string printable(std::string text) {
  const auto is_control = [](unsigned char c) { return std::iscntrl(c) != 0; };
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

}  // namespace tandem
