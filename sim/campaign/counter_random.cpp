#include "sim/campaign/counter_random.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace tandem::sim {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::array<std::uint64_t, 2> factors{0xD2511F53, 0xCD9E8D57};
  constexpr std::array<std::uint32_t, 2> key_steps{0x9E3779B9, 0xBB67AE85};
  constexpr int rounds = 10, word = 32;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t a = factors[0] * counter[0], b = factors[1] * counter[2];
    counter = {static_cast<std::uint32_t>(b >> word) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> word) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    for (std::size_t i = 0; i < key.size(); ++i) key[i] += key_steps[i];
  }
  return counter;
}

double CounterRandom::uniform() {
  constexpr int word = 32, unused = 12;  // 52 bits, and a half so that neither end is reached
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> word); };
  const auto words = philox({low(drawn_), high(drawn_), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  ++drawn_;
  const std::uint64_t bits = (std::uint64_t{words[0]} << word | words[1]) >> unused;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

Seconds CounterRandom::exponential(double rate) {
  return rate > 0 ? -std::log(uniform()) / rate : std::numeric_limits<Seconds>::infinity();
}

double CounterRandom::normal() {
  const double radius = std::sqrt(-2 * std::log(uniform()));  // Box and Muller 1958
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace tandem::sim
