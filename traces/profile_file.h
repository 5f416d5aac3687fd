#pragma once

#include <string>

#include "runtime/dag/profile.h"
#include "traces/output_file.h"

namespace tandem::traces {

/// Returns a profile as bytes (dag.proto, fields.h); equal profiles give equal bytes.
std::string to_bytes(const Profile& profile);

/// Returns whether the file begins as a profile that `to_bytes` wrote.
bool is_profile_file(const std::string& path);

/// Reads what `to_bytes` wrote to the file, and checks it (`first_flaw`). Throws InputError, exit code 2, for any other file.
Profile read_profile_file(const std::string& path);

}  // namespace tandem::traces
