#pragma once

#include <string>

#include "studies/calibrate/measure.h"

namespace tandem::studies {

/// Returns the profile for people and for version control: where it was measured, what the simulator's fits make of it
/// (sim/kernel_fit.h), the spread by operation, and every kernel. `read_profile` reads the text (scenarios/reading/profile.h).
std::string to_yaml(const Profile& profile);

/// One figure of a fit, as a line for people.
struct Fit {
  std::string name, value, note;
};

/// Returns what the simulator's fits make of a profile (sim/kernel_fit.h).
std::vector<Fit> fits_of(const Profile& profile);

}  // namespace tandem::studies
