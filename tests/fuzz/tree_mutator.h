#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace tandem::fuzz {

// Take a document apart as a tree, change one to four of its nodes (another value, one less, one twice, one at another place, one
// wrapped in a list, a field more), and write it again. They return an empty text where the bytes are no such document.

std::string mutate_yaml(const std::string& bytes, Random& random, const std::vector<std::string>& words);
std::string mutate_json(const std::string& bytes, Random& random, const std::vector<std::string>& words);

}  // namespace tandem::fuzz
