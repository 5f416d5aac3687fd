#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::studies {

/// Returns the numbers in little-endian order, deflated by zlib, in base64.
std::string packed(const std::vector<std::uint32_t>& numbers);
std::string packed(const std::vector<std::int16_t>& numbers);

}  // namespace tandem::studies
