#pragma once

#include "scenarios/lowering/context.h"

namespace tandem {

/// Lowers `module` keeping nothing but its input: its backward lowers the forward once more, labelled recompute, and goes back
/// through that.
BufferId checkpoint(Context& context, Tape& tape, const Module& module, BufferId x);

}  // namespace tandem
