#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// The first of each kind of collective, in the DAG's order. Of one kind are those of one operation with its attributes, on one
/// communicator, of one size and data type.
std::vector<GroupId> distinct_collectives(const Dag& dag);

}  // namespace tandem
