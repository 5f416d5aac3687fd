#pragma once

#include <string>

namespace tandem::studies {

/// The page of a study's database or of a JSON result, in the file at `path`. Throws InputError where the file is neither.
std::string file_page(const std::string& path, const std::string& command);

}  // namespace tandem::studies
