#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/calibrate/measure.h"

namespace tandem::cli {

/// How many kernels were measured and what was left out, with the fits.
std::string to_text(const Calibration& calibration);

}  // namespace tandem::cli
