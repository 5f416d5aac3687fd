#pragma once

#include <string>

namespace tandem::studies {

/// Returns the page of the study's database or the JSON result in the file at `path`. Throws InputError where the file is
/// neither.
std::string file_page(const std::string& path, const std::string& command);

}  // namespace tandem::studies
