#pragma once

#include <string_view>

namespace tandem {

/// The version of Tandem that this program is of.
std::string_view program_version();

}  // namespace tandem
