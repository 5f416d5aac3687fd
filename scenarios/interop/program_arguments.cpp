#include "scenarios/interop/program_arguments.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/nearest.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {

ProgramArguments::ProgramArguments(const std::string& text, const std::string& file) : file_(file) {
  Argument* current = nullptr;
  for (const ShellWord& word : shell_words(text, file)) {
    if (!word.text.starts_with("--")) {
      if (current != nullptr) current->values.push_back(word.text);
      continue;
    }
    const std::size_t equals = word.text.find('=');
    const std::string name = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    current = nullptr;
    if (name.empty()) continue;
    const auto [entry, is_new] = arguments_.insert_or_assign(name, Argument{.values = {}, .place = word.place});
    if (is_new) order_.push_back(name);
    current = &entry->second;
    if (equals != std::string::npos) current->values.push_back(word.text.substr(equals + 1));
  }
}

void ProgramArguments::set(const std::string& name, std::vector<std::string> values, Place place) {
  const auto [entry, is_new] =
      arguments_.insert_or_assign(name, Argument{.values = std::move(values), .place = std::move(place)});
  if (is_new) order_.push_back(name);
}

void ProgramArguments::remove(std::string_view name) {
  if (const auto found = arguments_.find(name); found != arguments_.end()) arguments_.erase(found);
  std::erase(order_, name);
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

const std::vector<std::string>& ProgramArguments::values(std::string_view name) {
  static const std::vector<std::string> none;
  const Argument* argument = find(name);
  return argument == nullptr ? none : argument->values;
}

std::string ProgramArguments::text(std::string_view name, const std::string& fallback) {
  const Argument* argument = find(name);
  if (argument == nullptr) return fallback;
  if (argument->values.empty()) throw InputError(argument->place, "--" + std::string(name) + " has no value, expected one");
  return argument->values.front();
}

std::int64_t ProgramArguments::integer(std::string_view name, std::int64_t fallback) {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size())
    throw InputError(place(name), "--" + std::string(name) + " is " + excerpt(value) + ", expected a whole number" +
                                      (value.find('$') == std::string::npos ? "" : ": the variable is not set in this file"));
  return number;
}

std::int64_t ProgramArguments::required_integer(std::string_view name, const std::string& what) {
  if (!has(name)) throw InputError(place(name), "--" + std::string(name) + " is missing, expected " + what);
  return integer(name, 0);
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
    if (!arguments_.find(name)->second.known) names.push_back("--" + name);
  return names;
}

}  // namespace tandem::scenarios
