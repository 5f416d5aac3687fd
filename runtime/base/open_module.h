#pragma once

#include <string>

namespace tandem {

/// Opens a module, a shared library that programs load when they first need it, and returns the function of that name. The loader
/// looks for the file in the folders that the program names (RPATH): its own, and lib/tandem where it is installed. The module
/// stays open. Throws std::runtime_error where it is not found: "`library` cannot be loaded: ..".
void* function_of_module(const char* file, const char* function, const std::string& library);

}  // namespace tandem
