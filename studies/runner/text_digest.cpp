#include "studies/runner/text_digest.h"

#include <spdlog/fmt/fmt.h>

#include <cstdint>

namespace tandem::studies {

std::string digest_of_text(std::string_view text) {
  std::uint64_t digest = 0xcbf29ce484222325;  // offset basis and prime of 64-bit FNV
  for (const char c : text) {
    digest ^= static_cast<unsigned char>(c);
    digest *= 0x100000001b3;
  }
  return fmt::format("{:016x}", digest);
}

}  // namespace tandem::studies
