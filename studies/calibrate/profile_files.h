#pragma once

#include <string>

#include "runtime/dag/profile.h"
#include "traces/output_file.h"

namespace tandem::studies {

/// The two files of a profile: the one for the simulator at the path `out`, and the one for people at `out`.yaml. Both are opened
/// before the work begins, and both appear whole or not at all. Throws std::runtime_error with the path and the reason.
class ProfileFiles {
 public:
  explicit ProfileFiles(const std::string& out) : profile_(out), readable_(out + ".yaml") {}
  void write(const Profile& profile);

 private:
  OutputFile profile_, readable_;
};

}  // namespace tandem::studies
