#pragma once

#include <vector>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// The parts of a row that are shared out over the context-parallel ranks, each held so many times (runtime/ops/column_parts.h).
struct ColumnParts {
  std::vector<std::int64_t> widths, repeats;
};

/// What mixes tokens by a state that passes from one to the next needs the whole sequence. From this rank's positions of all
/// columns [s/cp,b,W] to all positions, in order, of this rank's shares [s,b,W'], by an all-to-all for each part; without context
/// parallelism `x` itself. `heads_to_sequence` leads back.
BufferId sequence_to_heads(Context& context, Tape& tape, const ColumnParts& parts, BufferId x, std::string_view name);
BufferId heads_to_sequence(Context& context, Tape& tape, const ColumnParts& parts, BufferId y, std::string_view name);

}  // namespace tandem::scenarios
