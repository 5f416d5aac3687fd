#include "scenarios/shell/variables.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/shell/parse.h"

namespace tandem::scenarios::shell {
namespace {

constexpr std::size_t most_positional = 1000;

bool same(const Variable& a, const Variable& b) {
  const auto texts = [](const Variable& variable) {
    std::vector<std::string> all;
    for (const Text& item : variable.items) all.push_back(item.text);
    for (const auto& [key, item] : variable.keyed) {
      all.push_back(key);
      all.push_back(item.text);
    }
    return all;
  };
  return a.is_array == b.is_array && a.is_keyed == b.is_keyed && texts(a) == texts(b);
}

/// What several ways have in common at the beginning, and a mark for the rest.
Variable joined_variable(const std::vector<const Variable*>& ways, const Unknown& condition, Unknowns& unknowns) {
  Variable result{.is_array = std::ranges::any_of(ways, [](const Variable* way) { return way != nullptr && way->is_array; })};
  const auto item = [](const Variable* way, std::size_t i) -> const Text* {
    return way == nullptr || i >= way->items.size() ? nullptr : &way->items[i];
  };
  std::size_t common = 0;
  for (; item(ways[0], common) != nullptr; ++common) {
    const std::string& text = item(ways[0], common)->text;
    const auto agrees = [&](const Variable* way) { return item(way, common) != nullptr && item(way, common)->text == text; };
    if (!std::ranges::all_of(ways, agrees)) break;
    result.items.push_back(*item(ways[0], common));
  }
  Unknown rest = condition;
  for (const Variable* way : ways)
    for (std::size_t i = common; item(way, i) != nullptr; ++i) rest.words.push_back(item(way, i)->text);
  result.items.push_back({unknowns.add(std::move(rest)), condition.place});
  return result;
}

}  // namespace

Variables::Variables(std::span<const std::string> given) {
  for (const std::string& one : given) {
    const std::size_t equals = one.find('=');
    const std::string name = one.substr(0, equals);
    const bool numbered = !name.empty() && std::ranges::all_of(name, is_digit);
    if (equals == std::string::npos || !(numbered || is_name(name)))
      throw InputError({.file = "--env"}, excerpt(one) + " is no variable with its value, expected one such as TP=4 or 1=gpt3");
    const Text value{one.substr(equals + 1), {.file = "--env " + name}};
    if (!numbered) {
      set(name, {.items = {value}});
      given_.insert(name);
      continue;
    }
    std::size_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number < 1 || number > most_positional)
      throw InputError({.file = "--env"}, "there is no positional parameter " + name + ", expected one from 1 to 1000");
    if (positional.size() < number) positional.resize(number, {std::string(1, mark_begin), {}});
    positional[number - 1] = value;
  }
  knows_positional = false;
}

const Variable* Variables::find(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

std::size_t Variables::values() const {
  std::size_t values = positional.size();
  for (const auto& [name, variable] : all_) values += variable.values();
  return values;
}

void Variables::set(const std::string& name, Variable variable) {
  if (is_given(name)) return;
  if (!all_.contains(name)) order_.push_back(name);
  all_[name] = std::move(variable);
}

void Variables::unset(const std::string& name) {
  if (!is_given(name)) all_.erase(name);
}

void Variables::join(std::span<const Variables> others, const Unknown& condition, Unknowns& unknowns) {
  std::vector<std::string> names = order_;
  for (const Variables& other : others)
    for (const std::string& name : other.order_)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (const std::string& name : names) {
    std::vector<const Variable*> ways{find(name)};
    for (const Variables& other : others) ways.push_back(other.find(name));
    const auto as_first = [&](const Variable* way) {
      return way == nullptr || ways[0] == nullptr ? way == ways[0] : same(*way, *ways[0]);
    };
    if (!std::ranges::all_of(ways, as_first)) set(name, joined_variable(ways, condition, unknowns));
  }
}

}  // namespace tandem::scenarios::shell
