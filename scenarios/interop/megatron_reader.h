#pragma once

#include <cstdint>
#include <string>

#include "scenarios/interop/interop.h"
#include "scenarios/interop/program_arguments.h"

namespace tandem::scenarios {

/// Reads what pretrain_gpt.py would be called with, from wherever it comes. `gpus`: how many will run it, 0 where that is not
/// known. Throws InputError with the place of an argument.
Imported read_megatron_arguments(ProgramArguments arguments, const std::string& file, std::int64_t gpus);

}  // namespace tandem::scenarios
