#pragma once

#include <string>
#include <vector>

#include "runtime/dag/profile.h"

namespace tandem::studies {

/// Reads the kernels that a file lists, one on a line; blank lines and text after a # are ignored:
///   gemm TYPE M N K                                        forward, input gradient and weight gradient
///   attention TYPE SEQUENCE HEADS KV_HEADS HEAD_DIM [causal]    forward and backward
///   any other line: a kernel as the rows of a profile name it (traces/kernel_text.h)
/// Throws InputError with the place of the line.
std::vector<TimedKernel> read_shapes_file(const std::string& path);

}  // namespace tandem::studies
