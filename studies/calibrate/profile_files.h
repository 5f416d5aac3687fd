#pragma once

#include <string>

#include "runtime/dag/profile.h"
#include "traces/output_file.h"

namespace tandem::studies {

/// A profile for the simulator at the path `out`, and the same for people in `out`.yaml. Opened before the work begins; both
/// appear whole or not at all. Throws std::runtime_error with the path and the reason.
class ProfileFiles {
 public:
  explicit ProfileFiles(const std::string& out) : profile_(out), readable_(out + ".yaml") {}
  void write(const Profile& profile);

 private:
  OutputFile profile_, readable_;
};

}  // namespace tandem::studies
