#pragma once

#include <string>

#include "studies/search/plan.h"

namespace tandem::studies {

/// Writes what a person needs to run the plan into `folder`, which it makes: `scenario.yaml`, complete but for presets that the
/// document has filled in, and the same in other programs' words (scenarios/interop/formats.h): `megatron.args`,
/// `torchtitan.toml`, `nccl.env`. What those cannot express stands in them as comments.
void write_plan(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec, const std::string& folder);

}  // namespace tandem::studies
