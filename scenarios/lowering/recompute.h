#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Lowers `module` keeping nothing but its input: its backward lowers the forward once more, labelled recompute, and goes back
/// through that.
BufferId checkpoint(Context& context, Tape& tape, const Module& module, BufferId x);

/// Lowers `consumer` on the output of `producer` without keeping that output: just before the backward of the consumer it is
/// computed again from `x`. The consumer's own work is not repeated; its backward asks for its input by `Context::kept`.
BufferId recompute_output(Context& context, Tape& tape, const Module& producer, const Module& consumer, BufferId x);

}  // namespace tandem::scenarios
