#pragma once

#include <span>

#include "runtime/base/embedded_file.h"

namespace tandem::studies {

/// What `npm run build` makes in viz/; none where the build found no npm.
std::span<const EmbeddedFile> embedded_page();

}  // namespace tandem::studies
