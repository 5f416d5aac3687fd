#pragma once

#include <memory>

#include "runtime/kernel_timer.h"

namespace tandem {

/// Times the host kernels on one thread, as a rank of the host backend has it. A kernel runs on sets of operands in turn, which
/// together exceed the CPU's caches, or are 256 where the kernel is small: once before it counts, then at least five times,
/// whatever the budget, to which filling the operands comes on top. Throws std::runtime_error for operands of more than `memory`
/// bytes.
std::unique_ptr<KernelTimer> make_host_kernel_timer(Bytes memory);

/// This machine and what the host kernels are built on; `date` is now.
ProfileOrigin host_origin();

}  // namespace tandem
