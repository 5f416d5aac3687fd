#pragma once

#include "runtime/dag/device.h"

namespace tandem::sim {

/// Round numbers: 100 multiprocessors of 10 TFLOP/s each, half of it inside a tile; moving anything costs next to nothing.
inline Device tiled_device() {
  Device device;
  device.name = "tiled";
  device.memory_bandwidth = 1e14;
  device.multiprocessors = 100;
  device.peak[static_cast<std::size_t>(DType::bf16)] = 1e15;
  GemmEfficiency& gemm = device.efficiency.gemm[static_cast<std::size_t>(DType::bf16)];
  gemm = {.rate = 0.5, .sustained = 1, .feed = 1e30, .store = 1e30, .launch = 5e-6, .split = 1, .tiles = {{128, 128}}};
  device.efficiency.memory = 1;
  device.efficiency.launch = 2e-6;
  return device;
}

inline GemmEfficiency& gemm_of(Device& device) { return device.efficiency.gemm[static_cast<std::size_t>(DType::bf16)]; }

}  // namespace tandem::sim
