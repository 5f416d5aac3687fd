#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/scenario.h"

namespace tandem {

/// By rank: its GPU. Empty where every rank is on the GPU of its own number.
std::vector<std::uint32_t> gpus_of_ranks(const Scenario& scenario);

}  // namespace tandem
