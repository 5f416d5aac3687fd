#pragma once

#include <string>
#include <string_view>

#include "runtime/dag.h"

namespace tandem {

/// The DAG without the dependencies from tasks named `from` to tasks named `to` on other streams; expects that there are any.
Dag without_edges(Dag dag, std::string_view from, std::string_view to);

/// Every rank's block of the tensor moves on by its own size: the whole tensor is still there, on the wrong ranks.
Dag with_shifted_shards(Dag dag, const std::string& tensor);

/// The last members of two collectives take each other's places.
Dag with_swapped_members(Dag dag, GroupId a, GroupId b);

}  // namespace tandem
