#pragma once

#include <span>

#include "runtime/base/embedded_file.h"

namespace tandem::scenarios {

/// The presets and the profiles of GPUs.
std::span<const EmbeddedFile> embedded_files();

}  // namespace tandem::scenarios
