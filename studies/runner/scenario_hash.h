#pragma once

#include <string>

namespace tandem::studies {

/// What a result is known by: 16 hexadecimal digits (FNV-1a, 64 bits) of Tandem's version and the complete scenario. It changes
/// with every value that the simulation sees, in the scenario's file, in a preset or profile, or in the study, and with nothing
/// else: not with comments, the order of fields, or how the points are listed.
std::string hash_of_scenario(const std::string& complete_scenario);

}  // namespace tandem::studies
