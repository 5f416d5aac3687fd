#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// group_norm: x [s,b,h], weight [1,h] or [1,h/groups], and maybe a gate z [s,b,W]; y [s,b,h]. Each of
/// GroupNormAttributes::groups equal parts g of a row is normalised by itself:
///
///   y_g = w_g x_g / sqrt(mean(x_g^2) + epsilon), times silu(z_g) where there is a gate
///
/// whose h columns begin at `gate_column` of W; with a weight of the whole row (Mamba-2: Dao & Gu 2024, section 7.2;
/// `RMSNormGated` of state-spaces/mamba with a group size, whose gate the scan applies) or one for all parts (gated delta net:
/// Yang et al. 2024; `FusedRMSNormGated`).
CostFunction group_norm_cost;
HostKernel group_norm_host;

/// group_norm_backward: x, weight, maybe z, dy; dx, with a gate dz, dweight. The gradient of the weight is
/// added; of dz [s,b,W] the gate's columns are written, others left as they are.
CostFunction group_norm_backward_cost;
HostKernel group_norm_backward_host;

}  // namespace tandem
