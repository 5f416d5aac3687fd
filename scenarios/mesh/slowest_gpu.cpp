#include "scenarios/mesh/slowest_gpu.h"

#include "runtime/base/order_statistics.h"

namespace tandem::scenarios {

double slowest_of(std::size_t gpus, double spread) {
  if (gpus < 2 || spread == 0) return 1;
  const auto n = static_cast<double>(gpus);
  return 1 - spread * normal_quantile((n - 0.375) / (n + 0.25));
}

}  // namespace tandem::scenarios
