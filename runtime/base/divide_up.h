#pragma once

#include <cstdint>

namespace tandem {

/// Returns `count / size`, rounded up. Neither may be negative.
constexpr std::int64_t divide_up(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// Returns the next multiple of `size` that is not below `count`.
constexpr std::int64_t round_up(std::int64_t count, std::int64_t size) { return divide_up(count, size) * size; }

}  // namespace tandem
