#include "runtime/cuda/module/cudnn_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "runtime/cuda/module/say_once.h"

namespace tandem {
namespace {

std::string version_text_of(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

}  // namespace

std::unique_ptr<const CudnnLibrary> CudnnLibrary::open() {
  const char* const variable = std::getenv("TANDEM_CUDNN_LIBRARY");
  const std::string given = variable == nullptr ? "" : variable;
  if (given == "none") return nullptr;
  if (!given.empty()) return std::make_unique<const CudnnLibrary>(given);
  constexpr const char* usual = "libcudnn.so.9";
  if (::dlopen(usual, RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const std::string why = ::dlerror();
    if (!why.starts_with(std::string(usual) + ": cannot open shared object file"))  // it is there, but what it needs is not
      say_once("cuDNN cannot be opened: " + why + "; attention runs by Tandem's own kernels");
    return nullptr;
  }
  try {
    return std::make_unique<const CudnnLibrary>(usual);
  } catch (const std::runtime_error& error) {
    say_once(std::string(error.what()) + "; attention runs by Tandem's own kernels");
    return nullptr;
  }
}

CudnnLibrary::CudnnLibrary(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(std::string("cuDNN cannot be opened: ") + ::dlerror());
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) throw std::runtime_error("'" + file + "' is no cuDNN 9: it has no " + name);
  };
#define TANDEM_FIND(name) find(name, #name);
  TANDEM_CUDNN_FUNCTIONS(TANDEM_FIND)
#undef TANDEM_FIND
  version_ = cudnnGetVersion();
  if (version_ < oldest)
    throw std::runtime_error("'" + file + "' is cuDNN " + version_text() + ", expected " + version_text_of(oldest) + " or later");
}

std::string CudnnLibrary::version_text() const { return version_text_of(version_); }

void CudnnLibrary::check(cudnnStatus_t status, const char* call) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> why{};
  cudnnGetLastErrorString(why.data(), why.size());
  throw std::runtime_error(std::string(call) + ": " + cudnnGetErrorString(status) + (why[0] == '\0' ? "" : " (") + why.data() +
                           (why[0] == '\0' ? "" : ")"));
}

}  // namespace tandem
