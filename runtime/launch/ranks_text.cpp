#include "runtime/launch/ranks_text.h"

namespace tandem {

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  constexpr int most_runs = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t begin = 0;
  for (int run = 0; begin < ranks.size() && run < most_runs; ++run) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (run > 0) text += ", ";
    text += std::to_string(ranks[begin]);
    if (end - begin > 1) text += (end - begin == 2 ? ", " : "-") + std::to_string(ranks[end - 1]);
    begin = end;
  }
  if (begin < ranks.size()) text += " and " + std::to_string(ranks.size() - begin) + " more";
  return text;
}

}  // namespace tandem
