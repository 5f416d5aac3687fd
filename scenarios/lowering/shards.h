#pragma once

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/parameters.h"

namespace tandem::scenarios {

/// Writes down what of `piece`, which begins at `offset` of the bucket, is resident: up to three blocks where a slice begins and
/// ends within rows.
void add_shards(DagBuilder& builder, const ResidentPart& resident, const ParameterPiece& piece, std::int64_t offset,
                bool frozen = false);

}  // namespace tandem::scenarios
