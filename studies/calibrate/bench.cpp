#include "studies/calibrate/bench.h"

#include "runtime/backend_names.h"
#include "runtime/host/kernel_timer.h"

namespace tandem::studies {

CalibrationBench open_host_bench() {
  constexpr Bytes memory = 1'000'000'000;
  CalibrationBench bench{.gpu = nullptr,
                         .kernels = make_host_kernel_timer(memory),
                         .origin = host_origin(),
                         .precisions = {DType::f32},
                         .grids = {DType::f32},
                         .sequence = 128,
                         .memory = memory};
  bench.origin.tandem = TANDEM_VERSION;
  return bench;
}

CalibrationBench open_gpu_bench(std::unique_ptr<Gpu> gpu) {
  CalibrationBench bench{.gpu = std::move(gpu),
                         .kernels = nullptr,
                         .origin = host_origin(),
                         .precisions = {DType::bf16, DType::f32},
                         .grids = {DType::bf16},
                         .sequence = 4096,
                         .memory = 0};
  bench.kernels = bench.gpu->make_kernel_timer();
  const GpuInfo info = bench.gpu->info();
  bench.memory = info.memory / 8;
  bench.origin.backend = cuda_backend;
  bench.origin.device = info.name;
  bench.origin.libraries = info.versions;
  bench.origin.tandem = TANDEM_VERSION;
  return bench;
}

}  // namespace tandem::studies
