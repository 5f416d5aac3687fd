#pragma once

#include <functional>

#include "runtime/host/collectives.h"

namespace tandem {

/// Carries out a collective on the members' memory, on whatever device.
using CollectiveRunner = std::function<void(const Collective&)>;

/// `verify_collectives(dag)` for the collectives that `run` does.
std::size_t verify_collectives(const Dag& dag, const CollectiveRunner& run);

}  // namespace tandem
