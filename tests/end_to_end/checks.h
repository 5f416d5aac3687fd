#pragma once

#include <cstddef>
#include <string>

#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// Executes the scenario's step and the unsharded step on the same data, without rounding to fp8 or fp4; the largest relative
/// difference of the loss, of every gradient and of every updated weight.
double largest_difference(const Scenario& scenario);

/// The same of what the step adds to each weight: relative to the largest change of its tensor.
double largest_difference_of_changes(const Scenario& scenario);

/// Simulates the scenario on `folded` and unfolded. The first task of a rank that does not run when the same task of its class
/// does, within 1e-9 of the step; empty if all do.
std::string difference_when_folded(const Scenario& scenario, const World& folded);

/// Simulates folded and unfolded and expects every task of every rank to run when the same task of its class does, within 1e-9 of
/// the step. Returns the number of classes of ranks, 0 after a failure.
std::size_t expect_equal_when_folded(const Scenario& scenario);

}  // namespace tandem::studies
