#pragma once

#include <string>

namespace tandem::studies {

/// Returns the key of a result: 16 hexadecimal digits (FNV-1a, 64 bits) of Tandem's version and the complete scenario. The key
/// changes with every value that the simulation sees, in the scenario's file, in a preset or profile, or in the study, and with
/// nothing else: not with comments, the order of fields, or how the points are listed.
std::string hash_of_scenario(const std::string& complete_scenario);

}  // namespace tandem::studies
