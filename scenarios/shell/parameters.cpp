// What parameters and elements of arrays hold; see interpreter.h.

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "scenarios/shell/interpreter.h"
#include "scenarios/shell/parse.h"

namespace tandem::scenarios::shell {

Text Interpreter::unset_text(const std::string& name, const Place& place) {
  return {out_.unknowns.add({.kind = Unknown::Kind::unset, .what = "$" + name, .setting = name, .place = place}), place};
}

std::string Interpreter::number_of_arguments(const Place& place) {
  return out_.unknowns.add({.kind = Unknown::Kind::condition, .what = arguments_in_number, .place = place});
}

Interpreter::Parameter Interpreter::positional_parameter(const WordPart& part) {
  const std::string& name = part.text;
  const std::vector<Text>& all = variables().positional;
  const std::string unset(1, mark_begin);
  if (name == "@" || name == "*") {
    Parameter list{.items = {}, .is_set = !all.empty(), .is_list = true};
    for (std::size_t i = 0; i < all.size(); ++i)
      list.items.push_back(all[i].text == unset ? unset_text(std::to_string(i + 1), part.place) : all[i]);
    return list;
  }
  if (name == "#") {
    const bool is_known = variables().knows_positional || !all.empty();
    return {.items = {{is_known ? std::to_string(all.size()) : number_of_arguments(part.place), part.place}}, .is_set = true};
  }
  if (!is_digit(name[0]))
    return {.items = {{out_.unknowns.add({.kind = Unknown::Kind::output, .what = "$" + name, .place = part.place}), part.place}},
            .is_set = true};
  std::size_t number = std::numeric_limits<std::size_t>::max();  // stays where there are more digits than it takes
  std::from_chars(name.data(), name.data() + name.size(), number);
  if (number == 0) return {.items = {{file_, part.place}}, .is_set = true};
  if (number <= all.size() && all[number - 1].text != unset) return {.items = {all[number - 1]}, .is_set = true};
  if (variables().knows_positional) return {.items = {{"", part.place}}};
  return {.items = {unset_text(name, part.place)}};
}

Interpreter::Parameter Interpreter::parameter(const WordPart& part) {
  const std::string& name = part.text;
  if (!begins_name(name[0])) return positional_parameter(part);
  if (name == "BASH_SOURCE") return {.items = {{file_, part.place}}, .is_set = true};
  const Variable* variable = variables().find(name);
  const bool is_list = is_list_subscript(part.subscript);
  if (variable == nullptr) {
    if (is_list) return {.is_list = true};
    return {.items = {unset_text(name, part.place)}};
  }
  if (is_list) {
    Parameter list{.items = variable->items, .is_set = true, .is_list = true};
    std::erase_if(list.items, [](const Text& item) { return item.is_gap; });
    for (const auto& [key, item] : variable->keyed) list.items.push_back(item);
    list.is_set = !list.items.empty();
    return list;
  }
  if (!part.subscript.empty()) {
    const Text item = element(name, part.subscript, part.place);
    return {.items = {{item.text, part.place}}, .is_set = !item.is_gap};
  }
  if (variable->items.empty()) return {.items = {{"", part.place}}, .is_set = !variable->is_array};
  return {.items = {variable->items.front()}, .is_set = !variable->items.front().is_gap};
}

std::string Interpreter::expand_key(const std::string& text, const Place& place) {
  return expand_text(parse_quoted(text, place));
}

std::size_t Interpreter::index_of(const std::string& key, const Place& place, std::string& unknown) {
  const std::optional<std::int64_t> index = arithmetic(key, place, unknown);
  if (!index) return 0;
  if (*index >= static_cast<std::int64_t>(most_items)) throw InputError(place, "an array has no more than 100,000 values here");
  return static_cast<std::size_t>(*index);
}

Text Interpreter::element(const std::string& name, const std::string& key, const Place& place) {
  const Variable* variable = variables().find(name);
  const std::string expanded = expand_key(key, place);
  if (variable == nullptr) return unset_text(name, place);
  if (variable->is_keyed) {
    if (Unknowns::has(expanded)) return {expanded};
    std::string plain = expanded;
    std::erase_if(plain, [](char c) { return c == '"' || c == '\''; });
    const auto found = variable->keyed.find(plain);
    return found == variable->keyed.end() ? Text{"", place, true} : found->second;
  }
  std::string unknown;
  std::int64_t index = static_cast<std::int64_t>(index_of(expanded, place, unknown));
  if (!unknown.empty()) return {unknown};
  if (index < 0) index += static_cast<std::int64_t>(variable->items.size());
  const auto at = static_cast<std::size_t>(index);
  count_values(place, std::min(at, variable->items.size()));
  for (std::size_t i = 0; i < std::min(at + 1, variable->items.size()); ++i)  // what is behind it has another place, too
    if (Unknowns::is_one(variable->items[i].text) && i < at &&
        out_.unknowns.first_of(variable->items[i].text).kind == Unknown::Kind::condition)
      return variable->items[i];
  return at < variable->items.size() ? variable->items[at] : Text{"", place, true};
}

void Interpreter::write_element(const std::string& name, const std::string& key, std::int64_t value, const Place& place) {
  const Variable* known = known_to_copy(name, place);
  Variable variable = known == nullptr ? Variable{} : *known;
  const Text text{std::to_string(value), place};
  std::string unknown;
  const std::size_t index = key.empty() ? 0 : index_of(expand_key(key, place), place, unknown);
  if (!unknown.empty() || index >= most_items) return;
  if (variable.is_keyed) {
    variable.keyed[key] = text;
  } else {
    if (variable.items.size() <= index) variable.items.resize(index + 1, {"", place, true});
    variable.items[index] = text;
    variable.is_array = variable.is_array || !key.empty();
  }
  variables().set(name, std::move(variable));
}

}  // namespace tandem::scenarios::shell
