#pragma once

#include <span>

#include "runtime/base/embedded_file.h"

namespace tandem::studies {

/// viz/serve.html, which CMake puts into the binary.
std::span<const EmbeddedFile> embedded_serve_page();

}  // namespace tandem::studies
