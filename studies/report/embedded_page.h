#pragma once

#include <span>

#include "runtime/base/embedded_file.h"

namespace tandem::studies {

/// viz/report.html, alone.
std::span<const EmbeddedFile> embedded_page();

}  // namespace tandem::studies
