#pragma once

#include "runtime/base/units.h"

namespace tandem {

/// Returns the peak of this process's resident memory.
Bytes peak_rss();

}  // namespace tandem
