#include "runtime/cuda/module/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace tandem {
namespace {

constexpr const char* variable = "TANDEM_NCCL_LIBRARY";

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

std::string file_name() {
  const char* const given = std::getenv(variable);
  return given != nullptr && *given != '\0' ? given : "libnccl.so.2";
}

}  // namespace

NcclLibrary::NcclLibrary() {
  const std::string file = file_name();
  const std::string remedy =
      std::string("; set ") + variable + " to the libnccl.so.2 of NCCL " + version_text(oldest) + " or later";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(std::string("NCCL cannot be opened: ") + ::dlerror() + remedy);
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
  };
#define TANDEM_FIND(name) find(name, #name);
  TANDEM_NCCL_FUNCTIONS(TANDEM_FIND)
#undef TANDEM_FIND

  if (ncclGetVersion == nullptr || ncclGetVersion(&version_) != ncclSuccess)
    throw std::runtime_error("'" + file + "' is no NCCL" + remedy);
  if (version_ < oldest) throw std::runtime_error("'" + file + "' is NCCL " + version_text(version_) + remedy);
#define TANDEM_REQUIRE(name) \
  if (name == nullptr) throw std::runtime_error("'" + file + "', NCCL " + version_text(version_) + ", has no " #name + remedy);
  TANDEM_NCCL_FUNCTIONS(TANDEM_REQUIRE)
#undef TANDEM_REQUIRE
}

std::string NcclLibrary::what_is(ncclResult_t result) const {
  std::string text = ncclGetErrorString(result);
  const char* const last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return text;
}

}  // namespace tandem
