#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

/// Of every step that is executed, so that the same DAG has the same data wherever it runs.
inline constexpr std::uint64_t data_seed = 1;

/// The initial values of one unsharded parameter: each is a hash of the seed, the tensor's name and the element's place, so that
/// any rank computes any block alone.
///
/// Uniform, with the mean and width of a usual initialisation: matrices 0 and standard deviation 1 / sqrt(columns); norm weights
/// ("...norm.weight") 1 +- 10 % and norm biases 0 +- 10 %, so that a misplaced element shows.
class InitialParameter {
 public:
  InitialParameter(std::uint64_t seed, std::string_view tensor, std::int64_t columns);

  float at(std::int64_t row, std::int64_t column) const;

 private:
  std::uint64_t key_;
  float mean_ = 0;
  float half_width_ = 0;
};

/// The token at `position` of a sequence of the global batch, in [0, vocabulary).
std::int32_t initial_token(std::uint64_t seed, std::int64_t sequence, std::int64_t position, std::int64_t vocabulary);

}  // namespace tandem
