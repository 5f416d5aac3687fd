#include <cmath>

#include "scenarios/profile.h"
#include "scenarios/reader.h"
#include "scenarios/sections.h"

namespace tandem {
namespace {

constexpr DType arithmetic_types[] = {DType::f32, DType::bf16, DType::f16, DType::f8};

template <typename T>
T& at(std::array<T, dtype_count>& table, DType type) {
  return table[static_cast<std::size_t>(type)];
}

void read_efficiency(const YamlNode& node, const std::string& path, Device& device) {
  const Range<double> share{1e-6, 1};
  const Reader efficiency(node, path, {"gemm", "attention_forward", "attention_backward", "memory", "launch_us"});
  const Reader gemm(efficiency.child("gemm"), path + ".gemm", {"fp32", "bf16", "fp16", "fp8"});
  for (const DType type : arithmetic_types)
    if (at(device.peak, type) > 0) at(device.efficiency.gemm, type) = gemm.number(name_of(type), share);
  device.efficiency.attention_forward = efficiency.number("attention_forward", share);
  device.efficiency.attention_backward = efficiency.number("attention_backward", share);
  device.efficiency.memory = efficiency.number("memory", share);
  device.efficiency.launch = efficiency.number("launch_us", {0, 1e6}) * 1e-6;
}

}  // namespace

Device read_gpu(const YamlNode& node, const std::string& path) {
  const Reader gpu(node, path,
                   {"name", "architecture", "memory_GiB", "memory_bandwidth_GBps", "peak_TFLOPS", "efficiency", "profile"});
  Device device;
  device.name = gpu.text("name", "inline");
  device.architecture = gpu.choice<Architecture>("architecture",
                                                 {{"volta", Architecture::volta},
                                                  {"ampere", Architecture::ampere},
                                                  {"hopper", Architecture::hopper},
                                                  {"blackwell", Architecture::blackwell},
                                                  {"unknown", Architecture::unknown}},
                                                 Architecture::unknown);
  constexpr double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;
  device.memory = std::llround(gpu.number("memory_GiB", {1e-3, 1e6}) * bytes_per_gib);
  device.memory_bandwidth = gpu.number("memory_bandwidth_GBps", {1e-3, 1e6}) * 1e9;
  const Reader peak(gpu.child("peak_TFLOPS"), path + ".peak_TFLOPS", {"fp32", "bf16", "fp16", "fp8"});
  for (const DType type : arithmetic_types) at(device.peak, type) = peak.number(name_of(type), {0, 1e9}, 0) * 1e12;
  read_efficiency(gpu.child("efficiency"), path + ".efficiency", device);
  if (gpu.has("profile")) {
    const Reader profile(gpu.child("profile"), path + ".profile", {"file", "contents"});
    device.measured = read_profile(profile.text("file")).kernels;
  }
  return device;
}

}  // namespace tandem
