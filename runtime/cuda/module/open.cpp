#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/module/check.h"
#include "runtime/cuda/module/cudnn_attention.h"
#include "runtime/cuda/module/gpu_kernel_timer.h"
#include "runtime/cuda/module/gpu_step.h"

namespace tandem {
namespace {

/// Whose fused attention runs where it can.
std::string attention_library() {
  const std::optional<std::string> cudnn = cudnn_version();
  return cudnn.has_value() ? "cuDNN " + *cudnn : "no cuDNN";
}

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

class OpenedGpu final : public Gpu {
 public:
  explicit OpenedGpu(int device) : device_(device) {
    int gpus = 0;
    const cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
    if (device >= gpus)
      throw std::runtime_error("there is no GPU " + std::to_string(device) + " among " + std::to_string(gpus) + " here");
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaGetDeviceProperties(&properties_, device), "cudaGetDeviceProperties");
  }

  GpuInfo info() const override {
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    return {.name = properties_.name,
            .versions = "driver for CUDA " + version_text(driver) + ", CUDA " + version_text(runtime) + ", cuBLASLt " +
                        std::to_string(cublasLtGetVersion()) + ", " + attention_library(),
            .memory = static_cast<Bytes>(properties_.totalGlobalMem),
            .multiprocessors = properties_.multiProcessorCount};
  }

  std::unique_ptr<GpuStep> make_step(const Dag& dag, const GpuStepOptions& options) override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    return make_gpu_step(dag, options, properties_.multiProcessorCount);
  }

  std::unique_ptr<KernelTimer> make_kernel_timer() override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    return make_gpu_kernel_timer(properties_.multiProcessorCount, static_cast<Bytes>(properties_.l2CacheSize));
  }

 private:
  int device_;
  cudaDeviceProp properties_{};
};

}  // namespace
}  // namespace tandem

extern "C" std::unique_ptr<tandem::Gpu> tandem_open_gpu(int device, int interface) {
  // CUDA reads it when it begins: streams beyond the eight connections that it makes by default would wait for each other.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (interface != tandem::gpu_interface) throw std::runtime_error("tandem_cuda.so belongs to another version of tandem");
  return std::make_unique<tandem::OpenedGpu>(device);
}
