#include "sim/campaign/young_daly.h"

#include <cmath>

namespace tandem::sim {

Seconds young_interval(Seconds stall, Seconds mtbf) { return std::sqrt(2 * stall * mtbf); }

Seconds daly_interval(Seconds stall, Seconds mtbf) {
  if (stall >= 2 * mtbf) return mtbf;
  const double ratio = stall / (2 * mtbf);
  return young_interval(stall, mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - stall;
}

}  // namespace tandem::sim
