#include "studies/search/least_loss.h"

#include <algorithm>

namespace tandem::studies {

Seconds least_loss(std::vector<SlowedKernel> kernels, Seconds waits, Seconds communicating) {
  std::ranges::sort(kernels, {}, &SlowedKernel::loss);
  Seconds left = std::max(0.0, communicating - waits), loss = 0;
  for (const SlowedKernel& kernel : kernels) {
    const Seconds beside = std::min(left, kernel.alone / (1 - kernel.loss));
    loss += beside * kernel.loss;
    left -= beside;
  }
  return loss + left;
}

}  // namespace tandem::studies
