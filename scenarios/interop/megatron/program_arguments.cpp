#include "scenarios/interop/megatron/program_arguments.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/megatron_known.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {

ProgramArguments::ProgramArguments(Launch launch, const std::string& file) : launch_(std::move(launch)), file_(file) {
  read_words();
}

void ProgramArguments::read_words() {
  Argument* current = nullptr;
  for (const shell::Text& word : launch_.words) {
    if (!word.text.starts_with("--")) {
      if (shell::Unknowns::is_one(word.text)) check_decided(word);
      if (current != nullptr) current->values.push_back(word);
      continue;
    }
    const std::size_t equals = word.text.find('=');
    const std::string name = usual_name(word.text.substr(2, equals == std::string::npos ? equals : equals - 2));
    current = nullptr;
    if (name.empty()) continue;
    const auto [entry, is_new] = arguments_.insert_or_assign(name, Argument{.values = {}, .place = word.place});
    if (is_new) order_.push_back(name);
    current = &entry->second;
    if (equals != std::string::npos) current->values.push_back({word.text.substr(equals + 1), word.place});
  }
}

void ProgramArguments::check_decided(const shell::Text& word) const {
  const shell::Unknown& unknown = launch_.unknowns.first_of(word.text);
  std::set<std::string> names;
  for (const std::string& text : unknown.words) {
    std::istringstream parts(text);
    for (std::string part; parts >> part;)
      if (part.starts_with("--")) names.insert(usual_name(part.substr(2, part.find('=') - 2)));
  }
  std::erase_if(names, [](const std::string& name) { return effect_of_argument(name).kind == ArgumentEffect::Kind::none; });
  if (names.empty()) return;
  throw InputError(
      unknown.place.line > 0 ? unknown.place : word.place,
      "whether --" + *names.begin() + " is an argument depends on " + unknown.sentence() + other_settings(unknown.setting));
}

ProgramArguments::Argument* ProgramArguments::find(std::string_view name) {
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return nullptr;
  found->second.known = true;
  return &found->second;
}

bool ProgramArguments::has(std::string_view name) { return find(name) != nullptr; }

Place ProgramArguments::place(std::string_view name) {
  const Argument* argument = find(name);
  return argument == nullptr ? Place{.file = file_} : argument->place;
}

std::string ProgramArguments::other_settings(const std::string& setting) const {
  std::vector<std::string> others;
  for (const shell::Text& word : launch_.words) {
    // Of arguments that say something: the name is in front of the value.
    const auto at = static_cast<std::size_t>(&word - launch_.words.data());
    std::size_t begin = at;
    while (begin > 0 && !launch_.words[begin].text.starts_with("--")) --begin;
    const std::string name = launch_.words[begin].text;
    if (begin != at && name.starts_with("--") &&
        effect_of_argument(usual_name(name.substr(2))).kind == ArgumentEffect::Kind::none)
      continue;
    for (const shell::Unknown* unknown : launch_.unknowns.all_of(word.text))
      if (!unknown->setting.empty() && unknown->setting != setting && std::ranges::find(others, unknown->setting) == others.end())
        others.push_back(unknown->setting);
  }
  if (others.empty()) return "";
  return (setting.empty() ? ", expected --env for " : ", and such for ") + joined(others);
}

void ProgramArguments::fail_unknown(const std::string& name, const Place& place, const std::string& text) const {
  const shell::Unknown& unknown = launch_.unknowns.first_of(text);
  throw InputError(place, "--" + name + " depends on " + unknown.sentence() + other_settings(unknown.setting));
}

std::vector<std::string> ProgramArguments::values(std::string_view name) {
  Argument* argument = find(name);
  if (argument == nullptr) return {};
  argument->valued = true;
  std::vector<std::string> texts;
  for (const shell::Text& value : argument->values) {
    if (shell::Unknowns::has(value.text)) {
      const bool is_extra = !texts.empty() && shell::Unknowns::is_one(value.text) &&
                            launch_.unknowns.first_of(value.text).kind == shell::Unknown::Kind::unset;
      if (is_extra) continue;
      fail_unknown(std::string(name), argument->place, value.text);
    }
    texts.push_back(value.text);
  }
  return texts;
}

std::string ProgramArguments::text(std::string_view name, const std::string& fallback) {
  Argument* argument = find(name);
  if (argument == nullptr) return fallback;
  argument->valued = true;
  if (argument->values.empty()) throw InputError(argument->place, "--" + std::string(name) + " has no value, expected one");
  const std::string& value = argument->values.front().text;
  if (shell::Unknowns::has(value)) fail_unknown(std::string(name), argument->place, value);
  return value;
}

std::string ProgramArguments::known_text(std::string_view name) {
  Argument* argument = find(name);
  if (argument == nullptr || argument->values.empty()) return {};
  argument->valued = true;
  return launch_.unknowns.readable(argument->values.front().text);
}

std::int64_t ProgramArguments::integer(std::string_view name, std::int64_t fallback) {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size())
    throw InputError(place(name), "--" + std::string(name) + " is " + excerpt(value) + ", expected a whole number");
  return number;
}

std::int64_t ProgramArguments::required_integer(std::string_view name, const std::string& what) {
  if (has(name)) return integer(name, 0);
  std::string why;
  for (const std::string& missing : launch_.missing) why += "; " + missing;
  throw InputError(place(name), "--" + std::string(name) + " is missing, expected " + what + why);
}

double ProgramArguments::number(std::string_view name, double fallback) {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size())
    throw InputError(place(name), "--" + std::string(name) + " is " + excerpt(value) + ", expected a number");
  return number;
}

void ProgramArguments::copy_integer(YamlNode& to, std::string_view key, std::string_view name, std::int64_t fallback) {
  put(to, key, integer(name, fallback), place(name));
}

std::vector<std::string> ProgramArguments::unknown() const {
  std::vector<std::string> names;
  for (const std::string& name : order_)
    if (!arguments_.find(name)->second.known) names.push_back(name);
  return names;
}

std::vector<std::string> ProgramArguments::empty_extras() const {
  std::vector<std::string> sentences;
  for (const std::string& name : order_) {
    const Argument& argument = arguments_.find(name)->second;
    const std::size_t own = argument.known && !argument.valued ? 0 : 1;
    for (std::size_t i = own; i < argument.values.size(); ++i) {
      const std::string& text = argument.values[i].text;
      if (!shell::Unknowns::is_one(text)) continue;
      const shell::Unknown& unknown = launch_.unknowns.first_of(text);
      if (unknown.kind != shell::Unknown::Kind::unset) continue;
      const std::string sentence = unknown.what + " adds no arguments, as nothing sets it (--env " + unknown.setting + "=VALUE)";
      if (std::ranges::find(sentences, sentence) == sentences.end()) sentences.push_back(sentence);
    }
  }
  return sentences;
}

}  // namespace tandem::scenarios
