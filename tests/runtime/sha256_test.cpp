#include "runtime/base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tandem::sha256_test {
namespace {

std::string hexadecimal(const Digest256& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) text.append({digits[byte >> 4], digits[byte & 0xF]});
  return text;
}

std::string repeated(std::size_t count, int byte) { return std::string(count, static_cast<char>(byte)); }

struct Vector {
  std::string text, digest;
};

// NIST, "Examples with Intermediate Values", SHA-256, and the empty text and a million letters of the same authors.
TEST(Sha256, OfTheTextsOfNist) {
  const std::vector<Vector> vectors{
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {repeated(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [text, digest] : vectors) EXPECT_EQ(hexadecimal(sha256(text)), digest) << text.substr(0, 60);
}

// The length of the last block decides whether the text's length has room in it. From `head -c N /dev/zero | tr '\0' a |
// sha256sum`.
TEST(Sha256, AtTheEdgesOfABlock) {
  const std::vector<std::pair<std::size_t, std::string>> lengths{
      {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
      {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
      {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
  };
  for (const auto& [length, digest] : lengths) EXPECT_EQ(hexadecimal(sha256(repeated(length, 'a'))), digest) << length;
}

struct HmacVector {
  std::string key, text, digest;
};

// RFC 4231, section 4, test cases 1 to 7; of the fifth the first 128 bits.
TEST(HmacSha256, OfRfc4231) {
  std::string counted;
  for (char byte = 1; byte <= 25; ++byte) counted += byte;
  const std::vector<HmacVector> vectors{
      {repeated(20, 0x0b), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {repeated(20, 0xaa), repeated(50, 0xdd), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counted, repeated(50, 0xcd), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {repeated(20, 0x0c), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"},
      {repeated(131, 0xaa), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {repeated(131, 0xaa),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before "
       "being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const auto& [key, text, digest] : vectors)
    EXPECT_EQ(hexadecimal(hmac_sha256(key, text)).substr(0, digest.size()), digest) << text;
}

TEST(EqualDigests, DifferByAnyBit) {
  const Digest256 digest = sha256("a");
  EXPECT_TRUE(equal_digests(digest, sha256("a")));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    Digest256 other = digest;
    other[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_FALSE(equal_digests(digest, other)) << bit;
  }
}

}  // namespace
}  // namespace tandem::sha256_test
