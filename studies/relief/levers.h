#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// One way to pull a lever.
struct LeverSetting {
  std::vector<std::string> changes;  ///< of the scenario, as path=value
  std::int64_t replicas = 1;         ///< so many times fewer data-parallel replicas are left: dp is divided by it
};

/// A way to take memory off the GPUs, whatever it costs in time. What a setting changes must be among what the costs of layers
/// are known by (PassCosts::Key in search/pass_cost.h), for these bound the memory and the time of what is tried.
struct Lever {
  std::string_view name;
  /// Mildest first, seen from the scenario as it stands; none where there is nothing to pull. A setting may be refused.
  std::vector<LeverSetting> (*settings)(const Scenario&);
};

/// Returns all levers. A new one is a row.
std::span<const Lever> levers();

}  // namespace tandem::studies
