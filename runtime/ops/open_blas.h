#pragma once

#include <cblas.h>

namespace tandem {

/// What is used of OpenBLAS, on one thread per call: ranks run on threads of their own.
struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&openblas_get_config) config = nullptr;
};

/// Opened at its first use, as it starts a thread for each core when it is loaded, and again in every forked child: for a
/// simulation, which has no use for it, as much work as all the rest. Throws std::runtime_error when it is missing.
const OpenBlas& open_blas();

}  // namespace tandem
