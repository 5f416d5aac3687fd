#pragma once

#include <string_view>

#include "runtime/dag/axis.h"
#include "scenarios/mesh/world.h"

namespace tandem::scenarios {

/// What the communicators of a slot are called: "tp", "expert dp", "pp forward".
std::string_view family_of(Slot slot);

/// Returns the parallel axis that their time is counted on.
Axis axis_of(Slot slot);

}  // namespace tandem::scenarios
