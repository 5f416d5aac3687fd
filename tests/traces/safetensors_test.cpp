#include "traces/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tandem::traces::safetensors_test {
namespace {

template <typename Number>
Number number_at(const std::string& file, std::size_t at) {
  Number number;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

// Byte by byte, as the format has it: https://github.com/huggingface/safetensors#format.
TEST(Safetensors, PutsALengthAHeaderAndTheNumbersOneAfterTheOther) {
  const std::vector<float> weight{1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> tokens{7, -8};
  const std::string file = to_safetensors({{"weight", {2, 3}, std::span(weight)}, {"tokens", {2}, std::span(tokens)}});
  const auto length = number_at<std::uint64_t>(file, 0);
  EXPECT_EQ(length % 8, 0U);
  const std::size_t numbers = 8 + length;
  ASSERT_EQ(file.size(), numbers + sizeof(float) * 6 + sizeof(std::int32_t) * 2);
  EXPECT_EQ(file[8], '{');  // which the format demands
  const nlohmann::json header = nlohmann::json::parse(file.substr(8, length));
  EXPECT_EQ(header["weight"], nlohmann::json::parse(R"({"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]})"));
  EXPECT_EQ(header["tokens"], nlohmann::json::parse(R"({"dtype": "I32", "shape": [2], "data_offsets": [24, 32]})"));
  for (std::size_t i = 0; i < weight.size(); ++i) EXPECT_EQ(number_at<float>(file, numbers + sizeof(float) * i), weight[i]);
  EXPECT_EQ(number_at<std::int32_t>(file, numbers + 28), -8);
}

TEST(Safetensors, RefusesAShapeOfAnotherSize) {
  const std::vector<float> weight{1, 2, 3};
  EXPECT_THROW(to_safetensors({{"weight", {2, 2}, std::span(weight)}}), std::logic_error);
}

}  // namespace
}  // namespace tandem::traces::safetensors_test
