#pragma once

#include <cstddef>

#include "runtime/base/units.h"

namespace tandem::studies {

/// What one of several processes may take of this machine.
struct ProcessShare {
  Bytes memory = 0;
  std::size_t threads = 1;
};
/// Returns the part of each of so many that have this memory and all processors together.
ProcessShare share_of(std::size_t processes, Bytes memory);

}  // namespace tandem::studies
