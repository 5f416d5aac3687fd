#pragma once

#include <memory>

#include "runtime/backend.h"
#include "runtime/host/memory.h"

namespace tandem {

/// Runs a DAG that holds all its ranks on this machine: one thread per rank and stream in use, GEMM by OpenBLAS on one thread,
/// collectives through shared memory. Times are seconds of the steady clock since `drive` began.
std::unique_ptr<Backend> make_host_backend(HostMemory& memory);

/// Runs every distinct collective of the DAG (kind, communicator, size) once on crafted whole numbers through the very code the
/// step uses, and compares each element of each member with the closed form. Returns how many were checked.
/// Throws std::runtime_error naming the first communicator, kind, member and element that differ.
std::size_t verify_collectives(const Dag& dag);

}  // namespace tandem
