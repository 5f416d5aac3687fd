#include "traces/safetensors.h"

#include <bit>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace tandem::traces {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t alignment = 8;  // of the numbers, which readers map into memory

std::string_view bytes_of(const NamedTensor& tensor) {
  return std::visit(
      [](auto values) { return std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()); },
      tensor.values);
}

void check_shape(const NamedTensor& tensor) {
  const std::int64_t elements = std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
  if (static_cast<std::size_t>(elements) * sizeof(float) != bytes_of(tensor).size())
    throw std::logic_error("the tensor '" + tensor.name + "' has not the elements of its shape");
}

}  // namespace

std::string to_safetensors(const std::vector<NamedTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = {{"format", "pt"}};  // without which transformers refuses a file
  std::size_t end = 0;
  for (const NamedTensor& tensor : tensors) {
    check_shape(tensor);
    const std::size_t begin = end;
    end += bytes_of(tensor).size();
    header[tensor.name] = {{"dtype", std::holds_alternative<std::span<const float>>(tensor.values) ? "F32" : "I32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((alignment - text.size() % alignment) % alignment, ' ');
  const std::uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file.reserve(file.size() + text.size() + end);
  file += text;
  for (const NamedTensor& tensor : tensors) file += bytes_of(tensor);
  return file;
}

}  // namespace tandem::traces
