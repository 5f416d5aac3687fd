#include "runtime/contents/initial_values.h"

#include <cmath>

namespace tandem {
namespace {

std::uint64_t hash_of_text(std::string_view text) {
  std::uint64_t result = 0;
  for (const char c : text) result = hash(result ^ static_cast<unsigned char>(c));
  return result;
}

}  // namespace

InitialParameter::InitialParameter(std::uint64_t seed, std::string_view tensor, std::int64_t columns)
    : key_(hash(seed) ^ hash_of_text(tensor)) {
  if (tensor.ends_with("norm.weight")) {
    mean_ = 1.0F;
    half_width_ = 0.1F;
  } else if (tensor.ends_with(".bias")) {
    half_width_ = 0.1F;
  } else {
    // A uniform distribution over [-w, w) has the standard deviation w / sqrt(3).
    half_width_ = static_cast<float>(std::sqrt(3.0 / static_cast<double>(columns)));
  }
}

std::uint64_t token_key(std::uint64_t seed) { return hash(seed) ^ hash_of_text("tokens"); }

}  // namespace tandem
