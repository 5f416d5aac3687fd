#pragma once

#include "scenarios/interop/formats.h"

namespace tandem::scenarios {

// Writers that others build upon. Each is defined in the file of its name.

ScenarioWriter megatron_arguments, nccl_environment;

}  // namespace tandem::scenarios
