#pragma once

#include <span>

#include "runtime/base/embedded_file.h"

namespace tandem::studies {

/// Holds viz/report.html and nothing else.
std::span<const EmbeddedFile> embedded_page();

}  // namespace tandem::studies
