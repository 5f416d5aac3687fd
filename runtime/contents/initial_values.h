#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/hash.h"

namespace tandem {

/// [-1, 1) in steps of 2^-23, all of which fp32 represents.
TANDEM_HOST_DEVICE inline float symmetric_unit(std::uint64_t hashed) {
  return static_cast<float>(hashed >> 40) * 0x1p-23F - 1.0F;
}

/// The seed of every step that is executed, so that the same DAG has the same data wherever it runs.
inline constexpr std::uint64_t data_seed = 1;

/// The initial values of one unsharded parameter: each is a hash of the seed, the tensor's name and the element's place, so that
/// any rank computes any block alone.
///
/// Uniform, with the mean and width of a usual initialisation: matrices 0 and standard deviation 1 / sqrt(columns); norm weights
/// ("...norm.weight") 1 +- 10 % and biases 0 +- 10 %, so that a misplaced element shows.
class InitialParameter {
 public:
  InitialParameter(std::uint64_t seed, std::string_view tensor, std::int64_t columns);

  TANDEM_HOST_DEVICE float at(std::int64_t row, std::int64_t column) const {
    return mean_ + half_width_ * symmetric_unit(hash_of_place(key_, row, column));
  }

 private:
  std::uint64_t key_;
  float mean_ = 0;
  float half_width_ = 0;
};

std::uint64_t token_key(std::uint64_t seed);

/// The token at `position` of a sequence of the global batch, in [0, vocabulary).
TANDEM_HOST_DEVICE inline std::int32_t token_of(std::uint64_t key, std::int64_t sequence, std::int64_t position,
                                                std::int64_t vocabulary) {
  return static_cast<std::int32_t>(hash_of_place(key, sequence, position) % static_cast<std::uint64_t>(vocabulary));
}
inline std::int32_t initial_token(std::uint64_t seed, std::int64_t sequence, std::int64_t position, std::int64_t vocabulary) {
  return token_of(token_key(seed), sequence, position, vocabulary);
}

}  // namespace tandem
