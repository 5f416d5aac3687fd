#include "runtime/base/sha256.h"

#include <bit>
#include <cstddef>
#include <span>
#include <string>

namespace tandem {
namespace {

constexpr std::size_t sha_block = 64;  // bytes that are compressed at once
constexpr std::size_t sha_rounds = 64;
using ShaState = std::array<std::uint32_t, 8>;

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes (FIPS 180-4, 5.3.3).
constexpr ShaState sha_start{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/// The same of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<std::uint32_t, sha_rounds> sha_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// Of 64 bytes, words that begin with their highest byte.
std::array<std::uint32_t, sha_rounds> sha_schedule(std::string_view block) {
  std::array<std::uint32_t, sha_rounds> words{};
  for (std::size_t i = 0; i < sha_block; ++i) words[i / 4] = words[i / 4] << 8 | static_cast<std::uint8_t>(block[i]);
  for (std::size_t t = sha_block / 4; t < sha_rounds; ++t) {
    const std::uint32_t a = words[t - 15], b = words[t - 2];
    const std::uint32_t sigma_0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
    const std::uint32_t sigma_1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
    words[t] = words[t - 16] + sigma_0 + words[t - 7] + sigma_1;
  }
  return words;
}

/// FIPS 180-4, 6.2.2.
void sha_compress(ShaState& state, std::string_view block) {
  const std::array<std::uint32_t, sha_rounds> words = sha_schedule(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < sha_rounds; ++t) {
    const std::uint32_t sum_1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t t1 = h + sum_1 + choice + sha_constants[t] + words[t];
    const std::uint32_t sum_0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + sum_0 + majority;
  }
  const ShaState change{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += change[i];
}

/// The last bytes, a one, zeros, and the length in bits (FIPS 180-4, 5.1.1): one block or two.
std::string sha_tail(std::string_view last, std::uint64_t bytes) {
  std::string tail(last);
  tail += '\x80';
  while (tail.size() % sha_block != sha_block - sizeof bytes) tail += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bytes * 8 >> shift & 0xFF);
  return tail;
}

}  // namespace

Digest256 sha256(std::string_view bytes) {
  ShaState state = sha_start;
  const std::size_t whole = bytes.size() / sha_block * sha_block;
  for (std::size_t at = 0; at < whole; at += sha_block) sha_compress(state, bytes.substr(at, sha_block));
  const std::string tail = sha_tail(bytes.substr(whole), bytes.size());
  for (std::size_t at = 0; at < tail.size(); at += sha_block) sha_compress(state, std::string_view(tail).substr(at, sha_block));
  Digest256 digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest256 hmac_sha256(std::string_view key, std::string_view bytes) {
  constexpr char inner = 0x36, outer = 0x5c;
  const Digest256 short_key = sha256(key);
  std::string padded(key.size() > sha_block ? bytes_of(short_key) : key);
  padded.resize(sha_block, '\0');
  const auto masked = [&](char mask) {
    std::string block = padded;
    for (char& byte : block) byte = static_cast<char>(byte ^ mask);
    return block;
  };
  const Digest256 of_text = sha256(masked(inner) + std::string(bytes));
  return sha256(masked(outer) + std::string(bytes_of(of_text)));
}

bool equal_digests(const Digest256& a, const Digest256& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::string_view bytes_of(const Digest256& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

}  // namespace tandem
