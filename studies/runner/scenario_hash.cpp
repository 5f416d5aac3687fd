#include "studies/runner/scenario_hash.h"

#include <spdlog/fmt/fmt.h>

#include <cstdint>

namespace tandem::studies {

std::string hash_of_scenario(const std::string& complete_scenario) {
  std::uint64_t hash = 0xcbf29ce484222325;  // offset basis and prime of 64-bit FNV
  for (const char c : "tandem " TANDEM_VERSION "\n" + complete_scenario) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace tandem::studies
