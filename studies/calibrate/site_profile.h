#pragma once

#include "runtime/dag/profile.h"
#include "studies/calibrate/site_fit.h"

namespace tandem::studies {

/// Returns a profile that holds the site alone, learnt now.
Profile profile_of(const Site& site);

}  // namespace tandem::studies
