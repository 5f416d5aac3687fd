#pragma once

#include <string>

#include "runtime/dag/dag.h"

namespace tandem {

/// Checks a DAG that came from outside. Returns the first id or range that leads nowhere, as half a sentence, or an empty text if
/// there is none. A DAG that passes can be walked, simulated and given memory; whether operands suit their operation is for the
/// operation to say.
std::string first_flaw(const Dag& dag);

}  // namespace tandem
