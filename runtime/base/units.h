#pragma once

#include <cstdint>

#include "runtime/base/namespaces.h"

namespace tandem {

// SI units throughout. A quantity in another unit says so in its name (`_GBps`, `_MB`).
using Seconds = double;
using Bytes = std::int64_t;
using Flops = double;
using BytesPerSecond = double;
using FlopsPerSecond = double;

}  // namespace tandem
