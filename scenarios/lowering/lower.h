#pragma once

#include "runtime/dag.h"
#include "scenarios/scenario.h"
#include "scenarios/world.h"

namespace tandem {

/// Lowers one training step for the ranks of `world`: all of them to execute, one of each class to simulate. Nothing else
/// differs.
Dag lower(const Scenario& scenario, const World& world);

/// FLOPs of the model's matrix products and attention for one token, forward and backward (three times the forward), with the
/// causal half of attention. Per token, forward:
///   layers * (2 h (heads + 2 kv_heads) d + 2 heads d h + 2 h f (3 if gated, else 2)) + 2 h vocab + layers * 2 s heads d
/// and for each depth of multi-token prediction a layer, a head and 2 (2 h) h more.
/// With latent attention the projections are those of mla.h, and 2 d is the width of a query and a value together.
double model_flops_per_token(const ModelSpec& model, std::int64_t sequence);

}  // namespace tandem
