#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// Ascending ranks in words: "rank 3", "ranks 1, 4-7"; of very many runs the first, and how many more there are.
std::string ranks_text(const std::vector<std::uint32_t>& ranks);

}  // namespace tandem
