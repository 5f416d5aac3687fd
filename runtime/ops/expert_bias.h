#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Balancing without a loss (Wang et al. 2024, arXiv 2408.15664; DeepSeek-V3, arXiv 2412.19437, section 2.1.2): each expert has a
// bias that counts where a token chooses, not in its gates. After each step it moves against the expert's load.

/// count_choices: slots [T,k] of route; counts [E], updated. Adds how many of the choices are of each expert, those among them
/// that found no slot.
CostFunction count_choices_cost;
HostKernel count_choices_host;

/// update_expert_bias: counts [L,E], of the choices of a step in L layers; bias [L,E], updated. With ScaleAttributes::factor as
/// rate, as get_updated_expert_bias of Megatron-Core (megatron/core/transformer/moe/moe_utils.py), in each layer:
///   bias_e += rate sign(mean of the counts - count_e)
CostFunction update_expert_bias_cost;
HostKernel update_expert_bias_host;

}  // namespace tandem
