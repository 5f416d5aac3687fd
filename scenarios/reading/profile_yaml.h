#pragma once

#include <string>

#include "runtime/dag/profile.h"

namespace tandem::scenarios {

/// Reads a profile in the form that `tandem calibrate` writes beside the protobuf, for people and for version control. Its
/// `kernels` are lines "KERNEL = MEDIAN LOWEST HIGHEST SAMPLES" with times in us (KERNEL: traces/kernel_text.h), its
/// `collectives` "OPERATION MEMBERS BYTES [on MACHINES] = ..."; `fits` is for people alone. `file` stands for it in messages.
/// Throws InputError.
Profile profile_of_yaml(const std::string& text, const std::string& file);

}  // namespace tandem::scenarios
