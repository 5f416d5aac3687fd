#pragma once

#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <fstream>
#include <random>
#include <string>

#include "traces/dag.pb.h"

/// For tests of what reads Tandem's own files: bytes as a file, and bytes with damage.
namespace tandem::traces {

inline void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// The file's bytes with another content and the checksum of that content, as if somebody had written it so.
inline std::string resealed(const std::string& bytes, const std::string& content) {
  file::File file;
  EXPECT_TRUE(file.ParseFromString(bytes));
  boost::crc_32_type crc;
  crc.process_bytes(content.data(), content.size());
  file.set_content(content);
  file.set_checksum(crc.checksum());
  return file.SerializeAsString();
}

inline std::string content_of(const std::string& bytes) {
  file::File file;
  EXPECT_TRUE(file.ParseFromString(bytes));
  return file.content();
}

inline void flip_a_bit(std::string& bytes, std::size_t place, std::mt19937& random) {
  bytes[place] = static_cast<char>(bytes[place] ^ (1 << (random() % 8)));
}

/// Expects that `refusal`, which returns what a reader says of a file's bytes, says something of the file cut short, at each of
/// its first 40 bytes and at every `stride`-th, and of the file with one flipped bit, in its header and anywhere.
template <typename Refusal>
void expect_damage_is_refused(const std::string& bytes, std::size_t stride, const Refusal& refusal) {
  for (std::size_t length = 0; length < bytes.size(); length += length < 40 ? 1 : stride)
    EXPECT_NE(refusal(bytes.substr(0, length)), "") << length;
  std::mt19937 random(1);
  for (std::size_t i = 0; i < 400; ++i) {
    const std::size_t place = i < 200 ? i / 8 : random() % bytes.size();
    std::string changed = bytes;
    flip_a_bit(changed, place, random);
    EXPECT_NE(refusal(changed), "") << place;
  }
}

/// How many files are refused and how many are taken, of `count` whose content has one to four flipped bits under a checksum that
/// is right. `is_taken` returns false for a refusal.
struct Sealed {
  int refused = 0, taken = 0;
};
template <typename IsTaken>
Sealed try_sealed_contents(const std::string& bytes, int count, const IsTaken& is_taken) {
  const std::string content = content_of(bytes);
  std::mt19937 random(2);
  Sealed found;
  for (int i = 0; i < count; ++i) {
    std::string changed = content;
    for (int flips = 1 + i % 4; flips > 0; --flips) flip_a_bit(changed, random() % changed.size(), random);
    ++(is_taken(resealed(bytes, changed)) ? found.taken : found.refused);
  }
  return found;
}

}  // namespace tandem::traces
