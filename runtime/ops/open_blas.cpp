#include "runtime/ops/open_blas.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace tandem {
namespace {

#ifdef TANDEM_STATIC_BLAS
#define TANDEM_BLAS_FUNCTION(name) (&name)
#else
void* function(const char* name) {
  static void* const library = dlopen(TANDEM_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("OpenBLAS: ") + dlerror());
  return found;
}
#define TANDEM_BLAS_FUNCTION(name) reinterpret_cast<decltype(&(name))>(function(#name))
#endif

}  // namespace

const OpenBlas& open_blas() {
  static const OpenBlas blas = [] {
    TANDEM_BLAS_FUNCTION(openblas_set_num_threads)(1);
    return OpenBlas{.sgemm = TANDEM_BLAS_FUNCTION(cblas_sgemm), .config = TANDEM_BLAS_FUNCTION(openblas_get_config)};
  }();
  return blas;
}

}  // namespace tandem
