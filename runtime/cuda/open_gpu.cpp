#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "runtime/cuda/gpu.h"

namespace tandem {
namespace {

std::filesystem::path module_path() {
  if (const char* path = std::getenv("TANDEM_CUDA_MODULE"); path != nullptr && *path != '\0') return path;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path installed = folder.parent_path() / "lib/tandem/tandem_cuda.so";
  return std::filesystem::exists(installed) ? installed : folder / "tandem_cuda.so";
}

std::runtime_error no_backend(const std::string& why) {
  return std::runtime_error("no backend cuda: " + why + "; available: --backend host");
}

}  // namespace

std::unique_ptr<Gpu> open_gpu(int device) {
  const std::filesystem::path path = module_path();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw no_backend("there is no " + path.string() + ": tandem was built without CUDA (TANDEM_CUDA=ON builds it)");
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw no_backend(dlerror());
  auto* const open = reinterpret_cast<OpenGpu*>(dlsym(module, "tandem_open_gpu"));
  if (open == nullptr) throw no_backend(path.string() + " is no module of tandem's");
  try {
    return open(device, gpu_interface);  // the module stays open for good: CUDA cannot be taken down
  } catch (const std::runtime_error& error) {
    throw no_backend(error.what());
  }
}

}  // namespace tandem
