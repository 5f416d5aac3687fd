#pragma once

#include <string>

#include "runtime/dag/profile.h"

namespace tandem::traces {

/// A kernel on one line: "gemm fp32[128,1,256] fp32[512,256] fp32[128,1,512] | gemm 0 1 0". After the bar the kind of attributes
/// and their values in the order of their fields; lists begin with their length.
std::string to_text(const TimedKernel& kernel);

/// What `to_text` wrote. Throws std::invalid_argument that says what was expected. Whether the operation takes these operands is
/// not checked.
TimedKernel kernel_of_text(const std::string& text);

}  // namespace tandem::traces
