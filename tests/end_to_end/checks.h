#pragma once

#include <cstddef>

#include "scenarios/scenario.h"

namespace tandem {

/// Executes the scenario's step and the unsharded step on the same data; the largest relative difference of the loss, of every
/// gradient and of every updated weight.
double largest_difference(const Scenario& scenario);

/// Simulates folded and unfolded and expects every task of every rank to run when the same task of its class does, within 1e-9 of
/// the step. Returns the number of classes of ranks, 0 after a failure.
std::size_t expect_equal_when_folded(const Scenario& scenario);

}  // namespace tandem
