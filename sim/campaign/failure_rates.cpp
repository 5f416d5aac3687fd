#include "sim/campaign/failure_rates.h"

#include <numeric>

namespace tandem::sim {

double ByComponent::sum() const { return std::accumulate(values.begin(), values.end(), 0.0); }

ByComponent failure_rates(const ByComponent& mtbf_hours, const ByComponent& counts) {
  constexpr double hour = 3600;
  ByComponent rates;
  for (std::size_t i = 0; i < component_count; ++i)
    if (mtbf_hours.values[i] > 0) rates.values[i] = counts.values[i] / (mtbf_hours.values[i] * hour);
  return rates;
}

}  // namespace tandem::sim
