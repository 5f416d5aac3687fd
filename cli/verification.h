#pragma once

#include <iosfwd>

#include "cli/command.h"
#include "cli/host_step.h"

namespace tandem {

/// The scenario on one rank: same model, same global batch, nothing sharded.
Scenario unsharded(const Scenario& scenario);

/// Executes the unsharded step on the same data and prints the largest relative difference of the loss, of every gradient and of
/// every updated weight. Fails above 1e-4.
ExitCode report_verification(const HostStep& step, const Scenario& scenario, std::ostream& out);

}  // namespace tandem
