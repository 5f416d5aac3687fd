#include "studies/calibrate/site_profile.h"

#include "runtime/host/kernel_timer.h"

namespace tandem::studies {

Profile profile_of(const Site& site) {
  Profile profile{.origin = host_origin(), .kernels = {}, .collectives = {}, .site = site};
  profile.origin.backend = "runs";
  profile.origin.device = site.gpu;
  profile.origin.libraries = site.framework;
  profile.origin.tandem = TANDEM_VERSION;
  return profile;
}

}  // namespace tandem::studies
