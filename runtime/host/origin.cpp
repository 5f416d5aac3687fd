
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/backend_names.h"
#include "runtime/host/kernel_timer.h"
#include "runtime/ops/open_blas.h"

namespace tandem {
namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find_first_not_of(" \t:", line.find(':'));
    if (value != std::string::npos) return line.substr(value);
  }
  return "CPU";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[sizeof "2000-01-01T00:00:00Z"];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

ProfileOrigin host_origin() {
  return {.backend = host_backend,
          .device = cpu_name(),
          .libraries = open_blas().config(),
          .date = utc_now(),
          .tandem = {},
          .threads = static_cast<std::int32_t>(std::thread::hardware_concurrency())};
}

}  // namespace tandem
