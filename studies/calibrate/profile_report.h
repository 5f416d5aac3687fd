#pragma once

#include <string>

#include "studies/calibrate/measure.h"

namespace tandem::studies {

/// The profile for people and for version control: where it was measured, what the simulator's fits make of it
/// (sim/kernel_fit.h), the spread by operation, and every kernel. `read_profile` reads it (scenarios/reading/profile.h).
std::string to_yaml(const Profile& profile);

/// One line for each figure.
struct Fit {
  std::string name, value, note;
};

/// What the simulator's fits make of a profile (sim/kernel_fit.h).
std::vector<Fit> fits_of(const Profile& profile);

}  // namespace tandem::studies
