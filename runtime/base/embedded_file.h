#pragma once

#include <string_view>

#include "runtime/base/namespaces.h"

namespace tandem {

/// A data file that the build put into the binary (cmake/EmbedData.cmake), so that it needs no installed folder.
struct EmbeddedFile {
  std::string_view path;  ///< from the root of the source tree
  std::string_view text;
};

}  // namespace tandem
