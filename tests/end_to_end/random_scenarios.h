#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// A whole scenario, drawn from a seed: the same on every machine. Model, mesh and training are those of `random_step`, the
/// network that of `random_network`, and each further field of `further_fields` may have another value than its default.
struct RandomScenario {
  std::uint32_t seed = 0;
  std::vector<std::string> overrides;  ///< of `tiny_cluster`; those that validation refuses beside the others were left out
  Scenario scenario;

  std::string text() const;  ///< seed and overrides, to repeat it
};

/// A field beside those that `random_step` and `random_network` draw, and values of it.
struct FurtherField {
  std::string path;
  std::vector<std::string> values;
};
const std::vector<FurtherField>& further_fields();

/// Of the seeds `first`, `first` + `stride`, ..., every one whose step is valid, until there are `count`.
std::vector<RandomScenario> random_scenarios(std::size_t count, std::uint32_t first, std::uint32_t stride);

/// The scenario with further overrides; nothing where validation refuses them.
std::optional<Scenario> with_changes(const RandomScenario& drawn, const std::vector<std::string>& changes);

}  // namespace tandem::studies
