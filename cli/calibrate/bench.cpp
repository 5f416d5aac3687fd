#include "cli/calibrate/bench.h"

#include "cli/backend_option.h"
#include "runtime/host/kernel_timer.h"

namespace tandem {

CalibrationBench open_bench(const std::string& backend) {
  require_built(backend);
  constexpr Bytes memory = 1'000'000'000;
  CalibrationBench bench{.kernels = make_host_kernel_timer(memory),
                         .collectives = make_host_collective_timer(),
                         .origin = host_origin(),
                         .precisions = {DType::f32},
                         .sequence = 128,
                         .memory = memory};
  bench.origin.tandem = TANDEM_VERSION;
  return bench;
}

}  // namespace tandem
