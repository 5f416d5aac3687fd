#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

// Each token is routed by one rank. With sp every tensor-parallel rank holds tokens of its own; without, all of them hold the
// same tokens, and each takes its run of the sequence, as DeepSpeed-TED drops duplicate tokens (Singh et al. 2023).

/// This rank's part of `whole`, whose rows are the tokens: a view, or `whole` itself with sp.
BufferId own_tokens(Context& context, BufferId whole);

/// All parts gathered over tp; `own` itself with sp.
BufferId all_tokens(Context& context, BufferId own, std::string_view name);

}  // namespace tandem::scenarios
