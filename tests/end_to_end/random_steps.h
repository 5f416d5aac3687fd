#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tandem::studies {

/// A combination of features, drawn from a seed: the same on every machine.
struct RandomStep {
  std::uint32_t seed = 0;
  std::vector<std::string> overrides;  ///< of `tiny_cluster`: model, mesh of at most 16 ranks, schedule, batch and nodes
  std::set<std::string> choices;       ///< what might have stood in the place of each, given those before it

  std::string text() const;  ///< seed and overrides, to repeat it
};

/// Fields are drawn one by one, each from the values that make sense beside those before. What remains impossible is for the
/// scenario's validation to refuse.
RandomStep random_step(std::uint32_t seed);
/// The same step, in which fields that came later may have other values, too: those of `random_step` stay what they were, and so
/// do the digests of their results. A new field is drawn here.
RandomStep newer_random_step(std::uint32_t seed);

/// Of the steps of seeds 1, 2, ..., the first `count` that are valid, and after them those that use a value not used before,
/// until all have been.
struct ValidSteps {
  std::vector<RandomStep> steps;
  std::size_t drawn = 0;            ///< for the first `count`
  std::vector<std::string> unused;  ///< values that none of 4 * `count` seeds led to in a valid step
};
ValidSteps valid_steps(std::size_t count, RandomStep (*drawn)(std::uint32_t seed) = random_step);

}  // namespace tandem::studies
