#pragma once

#include <span>

#include "runtime/base/embedded_file.h"

namespace tandem::scenarios {

/// The files of scenarios/presets.
std::span<const EmbeddedFile> embedded_files();

}  // namespace tandem::scenarios
