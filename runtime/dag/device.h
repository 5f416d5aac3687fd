#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/units.h"
#include "runtime/dag/kernel_efficiency.h"
#include "runtime/dag/profile.h"

namespace tandem {

/// NVIDIA's generations, as NCCL's tuning tells them apart.
enum class Architecture : std::uint8_t {
  unknown,
  volta,
  ampere,
  hopper,
  blackwell
};
inline constexpr std::size_t architecture_count = 5;
constexpr const char* name_of(Architecture architecture) {
  constexpr const char* names[architecture_count] = {"unknown", "volta", "ampere", "hopper", "blackwell"};
  return names[static_cast<int>(architecture)];
}

/// One model of processor, as the cost models see it. Peaks are dense, without sparsity.
struct Device {
  std::string name;
  Architecture architecture = Architecture::unknown;
  Bytes memory = 0;
  BytesPerSecond memory_bandwidth = 0;
  std::array<FlopsPerSecond, dtype_count> peak{};  ///< 0 where the device has no such arithmetic
  std::int32_t multiprocessors = 0;                ///< that take a kernel's tiles; 0: not known, as of a CPU
  KernelEfficiency efficiency;
  std::vector<MeasuredKernel> measured;         ///< of a calibrated device; they go before `efficiency`, see sim/kernel_model.h
  std::vector<MeasuredCollective> collectives;  ///< among several of it; they go before the cluster's links
  Site site;                                    ///< whose GPU it is: kernels and collectives take longer by that much
  BytesPerSecond host_bandwidth = 0;            ///< of the host's memory, this one's share; 0: not known
  double speed = 1.0;                           ///< 1 for a healthy device; a slow one divides every kernel's time by it
};

}  // namespace tandem
