#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/calibrate/site_fit.h"

namespace tandem::cli {

/// What `tandem calibrate --runs` learnt, and how much narrower predictions are for it.
std::string to_text(const SiteFit& fit, const Screen& screen = {});

}  // namespace tandem::cli
