#include "scenarios/reading/hf_config.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/reading/hf_fields.h"
#include "scenarios/reading/reader.h"

namespace tandem::scenarios {
namespace {

constexpr std::int64_t largest_size = 16'777'216;  // the largest that any field of a model may be

/// The number that a scalar is, if it is all of it.
template <typename T>
std::optional<T> number_of(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted) return {};
  T value{};
  const char* const end = node.text.data() + node.text.size();
  const auto [parsed_to, error] = std::from_chars(node.text.data(), end, value);
  return error == std::errc{} && parsed_to == end ? std::optional(value) : std::nullopt;
}

}  // namespace

void put_stated(YamlNode& to, std::string_view key, std::string_view field, YamlNode value) {
  const auto number = number_of<double>(value);
  if (number && value.text.find_first_of(".eE") != std::string::npos) value.text = fmt::format("{}", *number);  // not 500000.0
  to.erase(key);
  to.entries.push_back({std::string(key), std::string(field), value.place, std::move(value)});
}

HfConfig::HfConfig(YamlNode document) : root_(std::move(document)) {
  if (root_.kind != YamlNode::Kind::mapping)
    throw InputError(root_.place, "the file is " + describe(root_) + ", expected the fields of a config.json of Hugging Face");
  for (const YamlNode::Entry& entry : root_.entries) stated_.push_back(entry.key);
  const YamlNode* text = root_.find("text_config");
  const bool nests = text != nullptr && text->kind == YamlNode::Kind::mapping;
  fields_ = nests ? *text : root_;
  if (nests) {
    asked_.insert("text_config");
    for (const YamlNode::Entry& entry : fields_.entries) stated_.push_back(entry.key);
    for (const YamlNode::Entry& entry : root_.entries)  // such as model_type, tie_word_embeddings, vision_config
      if (entry.key != "text_config" && fields_.find(entry.key) == nullptr) fields_.entries.push_back(entry);
  }
  refuse_other_models();  // which says more than that their model_type is not known
  choose_family();
  add_defaults();
  refuse_other_models();
}

void HfConfig::refuse_other_models() {
  for (const HfNotModelled& other : hf_not_modelled())
    if (other.without == HfWithout::another && is_set(other.field))
      fail(other.field, std::string(other.field) + " is " + describe(*find(other.field)) + ", and " +
                            std::string(other.sentence) + "; expected a model without");
}

void HfConfig::choose_family() {
  const std::string expected = "expected a config.json of Hugging Face, whose model_type names the architecture";
  const YamlNode* type = find("model_type");
  if (type == nullptr && fields_.find("dim") != nullptr && fields_.find("n_layers") != nullptr)
    throw InputError(fields_.place, "model_type is missing, and dim and n_layers are fields of Meta's params.json; " + expected);
  if (type == nullptr) throw InputError(fields_.place, "model_type is missing, " + expected);
  if (type->kind != YamlNode::Kind::scalar) throw InputError(type->place, "model_type is " + describe(*type) + ", " + expected);
  type_ = type->text;
  type_place_ = type->place;
  family_ = find_hf_family(type_);
  if (family_ == nullptr)
    throw InputError(type_place_, "the architecture of model_type " + excerpt(type_) + " is not known here" +
                                      suggestion(type_, hf_model_types()) + "; or state the fields of `model` in the scenario");
}

void HfConfig::add_defaults() {
  for (const HfDefault& known : hf_defaults()) {
    if (known.type != family_->type || fields_.find(known.field) != nullptr) continue;
    const std::string field(known.field);
    fields_.entries.push_back({field, field, type_place_, make_scalar(std::string(known.value), type_place_)});
  }
}

const YamlNode* HfConfig::find(std::string_view field) {
  asked_.emplace(field);
  const YamlNode* found = fields_.find(field);
  return found == nullptr || found->kind == YamlNode::Kind::null ? nullptr : found;
}

std::string_view HfConfig::first_of(std::initializer_list<std::string_view> fields) {
  std::string_view first;
  for (const std::string_view field : fields)
    if (has(field) && first.empty()) first = field;
  return first;
}

Place HfConfig::place(std::string_view field) {
  const YamlNode* found = find(field);
  return found == nullptr ? fields_.place : found->place;
}

void HfConfig::fail(std::string_view field, const std::string& sentence) { throw InputError(place(field), sentence); }

void HfConfig::require(std::initializer_list<std::string_view> fields) {
  if (!first_of(fields).empty()) return;
  const std::vector<std::string> names(fields.begin(), fields.end());
  throw InputError(fields_.place, names.front() + " is missing, expected " +
                                      (names.size() > 1 ? "one of: " + joined(names) : "it") +
                                      " in the config.json of a model of type " + type_);
}

std::int64_t HfConfig::integer(std::string_view field, std::optional<std::int64_t> fallback) {
  const YamlNode* node = find(field);
  if (node == nullptr && fallback) return *fallback;
  require({field});
  const auto value = number_of<std::int64_t>(*node);
  if (!value || *value < 0 || *value > largest_size)
    fail(field, std::string(field) + " is " + describe(*node) + ", expected a whole number from 0 to " + grouped(largest_size));
  return *value;
}

double HfConfig::number(std::string_view field, double fallback) {
  const YamlNode* node = find(field);
  if (node == nullptr) return fallback;
  if (const auto value = number_of<double>(*node)) return *value;
  fail(field, std::string(field) + " is " + describe(*node) + ", expected a number");
}

bool HfConfig::boolean(std::string_view field, bool fallback) {
  const YamlNode* node = find(field);
  return node == nullptr ? fallback : boolean_of(*node, std::string(field));
}

std::string HfConfig::text(std::string_view field, const std::string& fallback) {
  const YamlNode* node = find(field);
  if (node == nullptr) return fallback;
  if (node->kind == YamlNode::Kind::scalar) return node->text;
  fail(field, std::string(field) + " is " + describe(*node) + ", expected a word");
}

std::vector<std::int64_t> HfConfig::integers(std::string_view field) {
  std::vector<std::int64_t> numbers;
  const YamlNode* node = find(field);
  if (node == nullptr) return numbers;
  const auto wrong = [&] { fail(field, std::string(field) + " is " + describe(*node) + ", expected a list of whole numbers"); };
  if (node->kind != YamlNode::Kind::sequence) wrong();
  for (const YamlNode& item : node->items) {
    const auto value = number_of<std::int64_t>(item);
    if (!value) wrong();
    numbers.push_back(*value);
  }
  return numbers;
}

std::vector<std::string> HfConfig::texts(std::string_view field) {
  std::vector<std::string> words;
  const YamlNode* node = find(field);
  if (node == nullptr) return words;
  for (const YamlNode& item : node->items) words.push_back(item.text);
  const bool all_words =
      std::ranges::all_of(node->items, [](const YamlNode& item) { return item.kind == YamlNode::Kind::scalar; });
  if (node->kind != YamlNode::Kind::sequence || !all_words)
    fail(field, std::string(field) + " is " + describe(*node) + ", expected a list of words");
  return words;
}

void HfConfig::copy(YamlNode& to, std::string_view key, std::string_view field) {
  if (const YamlNode* node = find(field)) put_stated(to, key, field, *node);
}

bool HfConfig::is_set(std::string_view field) {
  const YamlNode* node = find(field);
  if (node == nullptr) return false;
  if (node->kind == YamlNode::Kind::scalar) return node->text != "false" && number_of<double>(*node) != 0.0;
  return !node->items.empty() || !node->entries.empty();
}

std::vector<std::string> HfConfig::unasked() {
  std::vector<std::string> fields;
  for (const std::string& field : stated_)
    if (!asked_.contains(field) && is_set(field)) fields.push_back(field);  // and so asked once, wherever it stands
  return fields;
}

}  // namespace tandem::scenarios
