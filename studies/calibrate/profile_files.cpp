#include "studies/calibrate/profile_files.h"

#include "studies/calibrate/profile_yaml.h"
#include "traces/profile_file.h"

namespace tandem::studies {

void ProfileFiles::write(const Profile& profile) {
  profile_.write(to_bytes(profile));
  readable_.write(to_yaml(profile));
  readable_.commit();
  profile_.commit();
}

}  // namespace tandem::studies
