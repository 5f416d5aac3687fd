#include "scenarios/interop/hf/stored_weights.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
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
const YamlNode* field_of(const YamlNode& config, const char* field) {
  const YamlNode* own = config.find(field);
  const YamlNode* text = config.find("text_config");
  return own != nullptr || text == nullptr ? own : text->find(field);
}

std::optional<std::int64_t> bytes_of_weight(const YamlNode& config) {
  if (const YamlNode* quantization = field_of(config, "quantization_config"))
    return bytes_named(bytes_of_quantizations, quantization->find("quant_method"));
  const YamlNode* type = field_of(config, "dtype");
  return bytes_named(bytes_of_types, type == nullptr ? field_of(config, "torch_dtype") : type);
}

/// As an index states it. The names of the tensors, which are many, are passed over.
std::int64_t stated_size(const std::string& file) {
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

/// Of the tensors in a single file, which stand behind the length of a header, in 8 bytes, and the header (safetensors,
/// "Format").
std::int64_t size_of_tensors(const std::string& file) {
  std::array<unsigned char, 8> bytes{};
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(bytes.data()), bytes.size());
  std::uint64_t header = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) header = header << 8U | bytes[i];
  const std::uint64_t size = std::filesystem::file_size(file);
  if (size < bytes.size() || header > size - bytes.size())
    throw InputError({.file = file}, "is shorter than the header that it announces, expected weights as safetensors");
  return static_cast<std::int64_t>(size - bytes.size() - header);
}

/// Where weights may lie beside a config.json.
struct WeightsFile {
  const char* name;
  std::int64_t (*size)(const std::string& file);
};
constexpr WeightsFile weights_files[] = {{"model.safetensors.index.json", stated_size},
                                         {"pytorch_model.bin.index.json", stated_size},
                                         {"model.safetensors", size_of_tensors}};

}  // namespace

std::vector<std::string> differences_from_weights(const YamlNode& config, const YamlNode& model, const std::string& config_file) {
  const std::filesystem::path folder = std::filesystem::path(config_file).parent_path();
  for (const WeightsFile& weights : weights_files) {
    const std::string file = (folder / weights.name).string();
    if (!std::filesystem::is_regular_file(file)) continue;
    const std::optional<std::int64_t> bytes = bytes_of_weight(config);
    const std::int64_t stored = weights.size(file);
    if (!bytes) return {};
    const std::int64_t parameters = parameter_count(read_model(model)), expected = parameters * *bytes;
    const double off = static_cast<double>(stored) / static_cast<double>(expected) - 1;
    if (std::abs(off) <= largest_difference) return {};
    return {
        placed({.file = file},
               fmt::format("the weights take {} bytes, {:+.1f} % off the {} of the model's {} parameters with "
                           "{} byte{} each",
                           grouped(stored), 100 * off, grouped(expected), grouped(parameters), *bytes, *bytes == 1 ? "" : "s"))};
  }
  return {};
}

}  // namespace tandem::scenarios
