#include "runtime/host/initial_values.h"

#include <cmath>

namespace tandem {
namespace {

/// The step and the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint64_t hash_of_place(std::uint64_t key, std::int64_t first, std::int64_t second) {
  return mix(mix(key ^ static_cast<std::uint64_t>(first)) ^ static_cast<std::uint64_t>(second));
}

std::uint64_t hash_of_text(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char c : text) hash = mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

/// [-1, 1) in steps of 2^-23, all of which fp32 represents.
float symmetric_unit(std::uint64_t hash) { return static_cast<float>(hash >> 40) * 0x1p-23F - 1.0F; }

}  // namespace

InitialParameter::InitialParameter(std::uint64_t seed, std::string_view tensor, std::int64_t columns)
    : key_(mix(seed) ^ hash_of_text(tensor)) {
  if (tensor.ends_with("norm.weight")) {
    mean_ = 1.0F;
    half_width_ = 0.1F;
  } else if (tensor.ends_with("norm.bias")) {
    half_width_ = 0.1F;
  } else {
    // A uniform distribution over [-w, w) has the standard deviation w / sqrt(3).
    half_width_ = static_cast<float>(std::sqrt(3.0 / static_cast<double>(columns)));
  }
}

float InitialParameter::at(std::int64_t row, std::int64_t column) const {
  return mean_ + half_width_ * symmetric_unit(hash_of_place(key_, row, column));
}

std::int32_t initial_token(std::uint64_t seed, std::int64_t sequence, std::int64_t position, std::int64_t vocabulary) {
  const std::uint64_t key = mix(seed) ^ hash_of_text("tokens");
  return static_cast<std::int32_t>(hash_of_place(key, sequence, position) % static_cast<std::uint64_t>(vocabulary));
}

}  // namespace tandem
