#pragma once

#include <array>
#include <cstdint>

namespace tandem::sim {

/// A component that fails. All but failures of the software take a node out of the job.
enum class Component : std::uint8_t {
  gpu,
  node,     ///< but for its GPUs and NICs: power, disks, memory, CPUs, its maintenance
  link,     ///< a NIC with its cable and its share of the switches
  software  ///< of one node
};
inline constexpr std::size_t component_count = 4;
constexpr const char* name_of(Component component) {
  constexpr const char* names[] = {"gpu", "node", "link", "software"};
  return names[static_cast<std::size_t>(component)];
}

/// One number for each component, indexed by it.
struct ByComponent {
  std::array<double, component_count> values{};
  double operator[](Component component) const { return values[static_cast<std::size_t>(component)]; }
  double& operator[](Component component) { return values[static_cast<std::size_t>(component)]; }
  double sum() const;
};

/// Returns the failures per second of a job with `counts` of each component, of which one fails after `mtbf_hours` on average,
/// independently of the others and of its age (a Poisson process, so that rates add up):
///
///   rate = count / mtbf
///
/// Where `mtbf_hours` is 0 that component never fails.
ByComponent failure_rates(const ByComponent& mtbf_hours, const ByComponent& counts);

}  // namespace tandem::sim
