#pragma once

#include <span>
#include <string_view>

namespace tandem {

/// A data file that the build put into the binary (cmake/EmbedData.cmake), so that presets need no installed folder.
struct EmbeddedFile {
  std::string_view path;  ///< from the root of the source tree
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

}  // namespace tandem
