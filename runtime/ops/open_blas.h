#pragma once

#include <cblas.h>

namespace tandem {

/// The functions of OpenBLAS that are used. Each call runs on one thread, as ranks run on threads of their own.
struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&openblas_get_config) config = nullptr;
};

/// Opens OpenBLAS at its first use. Loading it starts a thread for each core, and again in every forked child, which would cost a
/// simulation, which has no use for it, as much as all its other work. Throws std::runtime_error when it is missing.
const OpenBlas& open_blas();

}  // namespace tandem
