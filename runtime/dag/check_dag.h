#pragma once

#include <string>

#include "runtime/dag/dag.h"

namespace tandem {

/// For a DAG that came from outside: the first id or range that leads nowhere, as half a sentence; empty if there is none. What
/// it lets pass can be walked, simulated and given memory; that operands suit their operation is for the operation to say.
std::string first_flaw(const Dag& dag);

}  // namespace tandem
