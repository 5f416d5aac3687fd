#pragma once

#include <string>

#include "studies/calibrate/measure.h"

namespace tandem {

/// The profile for people and for version control: where it was measured, what the simulator's fits make of it
/// (sim/kernel_fit.h), the spread by operation, and every kernel. `read_profile` reads it (scenarios/reading/profile.h).
std::string to_yaml(const Profile& profile);

/// How many kernels were measured and what was left out, with the fits, for a terminal.
std::string to_text(const Calibration& calibration);

}  // namespace tandem
