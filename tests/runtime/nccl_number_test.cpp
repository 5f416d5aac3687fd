#include "runtime/cuda/nccl_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace tandem::nccl_number_test {
namespace {

double decoded(NcclType type, std::uint32_t bits) {
  std::vector<std::byte> bytes(bytes_of(type));
  std::memcpy(bytes.data(), &bits, bytes.size());
  return decode(type, bytes.data());
}

constexpr std::array all_types{NcclType::f32, NcclType::bf16, NcclType::f16, NcclType::u8, NcclType::i32};

TEST(NcclNumber, WholeNumbersUpTo255AreExactInEveryType) {
  for (const NcclType type : all_types)
    for (int number = 0; number < 256; ++number) EXPECT_EQ(decoded(type, encode(type, static_cast<float>(number))), number);
}

// IEEE 754's binary16, and binary32 cut to 16 bits: sign, 5 or 8 bits of exponent, mantissa.
TEST(NcclNumber, IsAsTheTypesHoldIt) {
  EXPECT_EQ(encode(NcclType::f32, 1.0F), 0x3F800000U);
  EXPECT_EQ(encode(NcclType::bf16, 1.0F), 0x3F80U);
  EXPECT_EQ(encode(NcclType::f16, 1.0F), 0x3C00U);
  EXPECT_EQ(encode(NcclType::bf16, 1.0F / 3), 0x3EABU);
  EXPECT_EQ(encode(NcclType::f16, 1.0F / 3), 0x3555U);
  EXPECT_EQ(encode(NcclType::f16, 0x1p-14F), 0x0400U);
  EXPECT_EQ(encode(NcclType::bf16, 1 + 0x1p-8F), 0x3F80U) << "a tie, to even";
  EXPECT_EQ(encode(NcclType::bf16, 1 + 0x3p-8F), 0x3F82U) << "a tie, to even";
  EXPECT_EQ(encode(NcclType::i32, 7.9F), 7U);
}

TEST(NcclNumber, DecodesWhatMemoryMayHold) {
  EXPECT_EQ(decoded(NcclType::f16, 0x0001), std::ldexp(1, -24));
  EXPECT_EQ(decoded(NcclType::f16, 0xFBFF), -65504);
  EXPECT_EQ(decoded(NcclType::f16, 0x7C00), std::numeric_limits<double>::infinity());
  EXPECT_EQ(decoded(NcclType::bf16, 0xC000), -2);
  for (const NcclType type : {NcclType::f32, NcclType::bf16, NcclType::f16}) EXPECT_TRUE(std::isnan(decoded(type, 0xFFFFFFFF)));
  EXPECT_EQ(decoded(NcclType::u8, 0xFF), 255);
  EXPECT_EQ(decoded(NcclType::i32, 0xFFFFFFFF), -1);
}

TEST(NcclNumber, RoundsByAtMostTheRoundingOfItsType) {
  for (const NcclType type : {NcclType::f32, NcclType::bf16, NcclType::f16}) {
    for (int i = 1; i < 5000; ++i) {
      const float number = static_cast<float>(i) / 3000;
      EXPECT_LE(std::abs(decoded(type, encode(type, number)) - number), rounding_of(type) * number) << number;
    }
  }
}

}  // namespace
}  // namespace tandem::nccl_number_test
