#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace tandem::fuzz {

/// Changes one to four things in the bytes without knowing what they mean, as libFuzzer does: a byte, a stretch that goes, comes
/// twice or moves, a word of the dictionary, a number, another end.
std::string mutate_bytes(std::string bytes, Random& random, const std::vector<std::string>& words);

}  // namespace tandem::fuzz
