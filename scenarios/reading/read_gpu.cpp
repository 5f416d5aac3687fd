#include <cmath>
#include <utility>

#include "scenarios/reading/profile.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

template <typename T>
T& at(std::array<T, dtype_count>& table, DType type) {
  return table[static_cast<std::size_t>(type)];
}

}  // namespace

Device read_gpu(const YamlNode& node, const std::string& path) {
  const Reader gpu(
      node, path,
      {"name", "architecture", "memory_GiB", "memory_bandwidth_GBps", "multiprocessors", "peak_TFLOPS", "efficiency", "profile"});
  Device device;
  device.name = gpu.text("name", "inline");
  device.architecture = gpu.choice<Architecture>(
      "architecture",
      choices({Architecture::volta, Architecture::ampere, Architecture::hopper, Architecture::blackwell, Architecture::unknown}),
      Architecture::unknown);
  constexpr double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;
  device.memory = std::llround(gpu.number("memory_GiB", {1e-3, 1e6}) * bytes_per_gib);
  device.memory_bandwidth = gpu.number("memory_bandwidth_GBps", {1e-3, 1e6}) * 1e9;
  device.multiprocessors = static_cast<std::int32_t>(gpu.integer("multiprocessors", {0, 1'000'000}, 0));
  const Reader peak(gpu.child("peak_TFLOPS"), path + ".peak_TFLOPS", keys_of(arithmetic_types));
  for (const DType type : arithmetic_types) at(device.peak, type) = peak.number(name_of(type), {0, 1e9}, 0) * 1e12;
  read_efficiency(gpu.child("efficiency"), path + ".efficiency", device);
  if (gpu.has("profile")) {
    const Reader profile(gpu.child("profile"), path + ".profile", {"file", "contents"});
    Profile measured = read_profile(profile.text("file"));
    device.site = std::move(measured.site);
    device.measured = std::move(measured.kernels);
    device.collectives = std::move(measured.collectives);
  }
  return device;
}

}  // namespace tandem::scenarios
