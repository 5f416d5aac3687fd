#include "scenarios/interop/safetensors_index.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/sections.h"
#include "scenarios/spec/parameter_count.h"

namespace tandem::scenarios {
namespace {

using nlohmann::json;

constexpr double largest_difference = 0.01;
constexpr const char* index_files[] = {"model.safetensors.index.json", "pytorch_model.bin.index.json"};

struct NamedBytes {
  std::string_view name;
  std::int64_t bytes;
};
constexpr NamedBytes bytes_of_types[] = {{"float32", 4}, {"bfloat16", 2}, {"float16", 2}, {"float8_e4m3fn", 1}};
constexpr NamedBytes bytes_of_quantizations[] = {{"fp8", 1}};

template <std::size_t count>
std::optional<std::int64_t> bytes_named(const NamedBytes (&table)[count], const YamlNode* name) {
  if (name == nullptr) return {};
  for (const NamedBytes& known : table)
    if (known.name == name->text) return known.bytes;
  return {};
}

/// A field of the config, or of the language model nested in it.
const YamlNode* stated(const YamlNode& config, const char* field) {
  const YamlNode* own = config.find(field);
  const YamlNode* text = config.find("text_config");
  return own != nullptr || text == nullptr ? own : text->find(field);
}

std::optional<std::int64_t> bytes_of_weight(const YamlNode& config) {
  if (const YamlNode* quantization = stated(config, "quantization_config"))
    return bytes_named(bytes_of_quantizations, quantization->find("quant_method"));
  const YamlNode* type = stated(config, "dtype");
  return bytes_named(bytes_of_types, type == nullptr ? stated(config, "torch_dtype") : type);
}

/// The names of the tensors, which are many, are passed over.
std::optional<std::int64_t> total_size(const std::string& file) {
  const auto wanted = [](int depth, json::parse_event_t event, json& value) {
    return event != json::parse_event_t::key || depth != 1 || value != "weight_map";
  };
  const json index = json::parse(read_bytes(file), wanted, false);
  const json* metadata = index.is_object() && index.contains("metadata") ? &index["metadata"] : nullptr;
  const bool has_size = metadata != nullptr && metadata->is_object() && metadata->contains("total_size");
  if (!has_size || !(*metadata)["total_size"].is_number())
    throw InputError({.file = file},
                     "metadata.total_size is missing, expected the index of a model's weights; without the file "
                     "the weights are not looked at");
  return std::llround((*metadata)["total_size"].get<double>());
}

}  // namespace

std::vector<std::string> differences_from_weights(const YamlNode& config, const YamlNode& model, const std::string& config_file) {
  const std::filesystem::path folder = std::filesystem::path(config_file).parent_path();
  for (const char* name : index_files) {
    const std::string file = (folder / name).string();
    if (!std::filesystem::is_regular_file(file)) continue;
    const std::optional<std::int64_t> bytes = bytes_of_weight(config), stored = total_size(file);
    if (!bytes || !stored) return {};
    const std::int64_t parameters = parameter_count(read_model(model)), expected = parameters * *bytes;
    const double off = static_cast<double>(*stored) / static_cast<double>(expected) - 1;
    if (std::abs(off) <= largest_difference) return {};
    return {
        placed({.file = file},
               fmt::format("the weights take {} bytes, {:+.1f} % off the {} of the model's {} parameters with "
                           "{} byte{} each",
                           grouped(*stored), 100 * off, grouped(expected), grouped(parameters), *bytes, *bytes == 1 ? "" : "s"))};
  }
  return {};
}

}  // namespace tandem::scenarios
