#include "cli/calibrate/bench.h"

#include "runtime/host/kernel_timer.h"

namespace tandem {

namespace {

/// Collectives of one GPU alone would be copies: with several, they are measured by nobody yet.
CalibrationBench gpu_bench() {
  CalibrationBench bench{.gpu = open_gpu(),
                         .kernels = nullptr,
                         .collectives = nullptr,
                         .origin = host_origin(),
                         .precisions = {DType::bf16, DType::f32},
                         .sequence = 4096,
                         .memory = 0};
  bench.kernels = bench.gpu->make_kernel_timer();
  const GpuInfo info = bench.gpu->info();
  bench.memory = info.memory / 8;
  bench.origin.backend = "cuda";
  bench.origin.device = info.name;
  bench.origin.libraries = info.versions;
  bench.origin.tandem = TANDEM_VERSION;
  return bench;
}

}  // namespace

CalibrationBench open_bench(const std::string& backend) {
  if (backend == "cuda") return gpu_bench();
  constexpr Bytes memory = 1'000'000'000;
  CalibrationBench bench{.gpu = nullptr,
                         .kernels = make_host_kernel_timer(memory),
                         .collectives = make_host_collective_timer(),
                         .origin = host_origin(),
                         .precisions = {DType::f32},
                         .sequence = 128,
                         .memory = memory};
  bench.origin.tandem = TANDEM_VERSION;
  return bench;
}

}  // namespace tandem
