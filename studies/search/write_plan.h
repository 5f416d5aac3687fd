#pragma once

#include <string>

#include "studies/search/plan.h"

namespace tandem::studies {

/// Makes the folder for a plan, before the search. Throws std::runtime_error where no plan could be written into it.
void make_plan_folder(const std::string& folder);

/// Writes what a person needs to run the plan into `folder`, which is there: `scenario.yaml`, complete but for presets that the
/// document has filled in, and the same in other programs' words (scenarios/interop/formats.h): `megatron.args`,
/// `torchtitan.py`, `nccl.env` and so on. What those cannot express stands in them as comments.
void write_plan(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec, const std::string& folder);

}  // namespace tandem::studies
