#include "tests/cuda/encoding.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "runtime/cuda/module/number_types.h"

namespace tandem::studies {
namespace {

template <typename Element>
std::vector<std::byte> encode_as(const std::vector<float>& numbers, float scale) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(Element));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto element = from_float<Element>(numbers[i] / scale);
    std::memcpy(bytes.data() + i * sizeof(Element), &element, sizeof(Element));
  }
  return bytes;
}

template <typename Element>
std::vector<float> decode_as(const std::vector<std::byte>& bytes, float scale) {
  std::vector<float> numbers(bytes.size() / sizeof(Element));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Element element;
    std::memcpy(&element, bytes.data() + i * sizeof(Element), sizeof(Element));
    numbers[i] = to_float(element) * scale;
  }
  return numbers;
}

/// From 0 to 255; 0 where there is no number yet.
std::vector<std::byte> encode_bytes(const std::vector<float>& numbers) {
  std::vector<std::byte> bytes;
  for (const float number : numbers) bytes.push_back(std::byte{number > 0 ? static_cast<std::uint8_t>(number) : std::uint8_t{0}});
  return bytes;
}
std::vector<float> decode_bytes(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers;
  for (const std::byte byte : bytes) numbers.push_back(static_cast<float>(std::to_integer<int>(byte)));
  return numbers;
}

}  // namespace

std::vector<std::byte> encode(const std::vector<float>& numbers, DType type, float scale) {
  switch (type) {
    case DType::f32:
      return encode_as<float>(numbers, 1);
    case DType::bf16:
      return encode_as<Bf16>(numbers, 1);
    case DType::f16:
      return encode_as<F16>(numbers, 1);
    case DType::f8:
      return encode_as<F8>(numbers, scale);
    case DType::u8:
      return encode_bytes(numbers);
    default:
      throw std::logic_error("numbers are not stored as integers");
  }
}

std::vector<float> decode(const std::vector<std::byte>& bytes, DType type, float scale) {
  switch (type) {
    case DType::f32:
      return decode_as<float>(bytes, 1);
    case DType::bf16:
      return decode_as<Bf16>(bytes, 1);
    case DType::f16:
      return decode_as<F16>(bytes, 1);
    case DType::f8:
      return decode_as<F8>(bytes, scale);
    case DType::u8:
      return decode_bytes(bytes);
    default:
      throw std::logic_error("numbers are not stored as integers");
  }
}

// Half a unit in the last place of the mantissas' 8, 11 and 4 binary digits; below the smallest normal number, 2^-14 in fp16 and
// 2^-6 in e4m3, the unit stays that of 2^-14 and 2^-6.
Rounding rounding_of(DType type, float scale) {
  switch (type) {
    case DType::bf16:
      return {std::exp2(-8), 0};
    case DType::f16:
      return {std::exp2(-11), std::exp2(-25)};
    case DType::f8:
      return {std::exp2(-4), scale * std::exp2(-10)};
    default:
      return {};
  }
}

}  // namespace tandem::studies
