#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace tandem::traces {

/// A tensor of a file, row by row.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::variant<std::span<const float>, std::span<const std::int32_t>> values;
};

/// Returns a file in the format of safetensors (github.com/huggingface/safetensors, "Format"): the length of a JSON text as 8
/// bytes, little-endian, the text, which says each tensor's type, shape and place, then the numbers, little-endian too. Throws
/// std::logic_error where a shape has not as many elements as there are values.
std::string to_safetensors(const std::vector<NamedTensor>& tensors);

}  // namespace tandem::traces
