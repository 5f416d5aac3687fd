#include "runtime/base/open_module.h"

#include <dlfcn.h>

#include <stdexcept>

namespace tandem {

void* function_of_module(const char* file, const char* function, const std::string& library) {
  // Lazily, as libraries bring others that are never called.
  void* const module = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  void* const found = module == nullptr ? nullptr : ::dlsym(module, function);
  if (found == nullptr)
    throw std::runtime_error(library + " cannot be loaded: " + ::dlerror() + "; expected " + file +
                             " beside the program, or in lib/tandem where that is installed");
  return found;
}

}  // namespace tandem
