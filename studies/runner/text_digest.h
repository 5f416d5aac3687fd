#pragma once

#include <string>
#include <string_view>

namespace tandem::studies {

/// Returns 16 hexadecimal digits (FNV-1a, 64 bits) of the text.
std::string digest_of_text(std::string_view text);

}  // namespace tandem::studies
