#pragma once

#include <string>

#include "runtime/dag/profile.h"

namespace tandem::traces {

/// Writes a kernel on one line: "gemm fp32[128,1,256] fp32[512,256] fp32[128,1,512] | gemm 0 1 0". After the bar the kind of
/// attributes and their values in the order of their fields; lists begin with their length.
std::string to_text(const TimedKernel& kernel);

/// Reads what `to_text` wrote. Throws std::invalid_argument that says what was expected. It does not check whether the operation
/// takes these operands.
TimedKernel kernel_of_text(const std::string& text);

}  // namespace tandem::traces
