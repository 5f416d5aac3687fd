#pragma once

#include "runtime/base/units.h"

namespace tandem {

/// Peak resident memory of this process.
Bytes peak_rss();

}  // namespace tandem
