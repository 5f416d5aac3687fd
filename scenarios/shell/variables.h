#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/shell/unknown.h"

namespace tandem::scenarios::shell {

/// A text that came from somewhere.
struct Text {
  std::string text;
  Place place = {};
  bool is_gap = false;  ///< of an array: below an index that was set, and not set itself
};

struct Variable {
  bool is_array = false;
  bool is_keyed = false;
  std::vector<Text> items = {};            ///< one of a scalar
  std::map<std::string, Text> keyed = {};  ///< of an associative array

  std::size_t values() const { return items.size() + keyed.size(); }
};

/// What a script's variables hold. Those that the user gives keep their values, whatever a script assigns to them.
class Variables {
 public:
  Variables() = default;
  /// `given`: "NAME=VALUE", and "1=VALUE" for positional parameters. Throws InputError where one is neither.
  explicit Variables(std::span<const std::string> given);

  const Variable* find(std::string_view name) const;
  std::size_t values() const;  ///< how many there are in all variables together
  bool is_given(std::string_view name) const { return given_.contains(std::string(name)); }
  void set(const std::string& name, Variable variable);
  void unset(const std::string& name);
  const std::map<std::string, Variable, std::less<>>& all() const { return all_; }
  /// In the order in which they were set first.
  const std::vector<std::string>& order() const { return order_; }

  std::vector<Text> positional;   ///< from $1 on
  bool knows_positional = false;  ///< false: how many there are is up to who starts the script

  /// Makes what differs in the others depend on the condition.
  void join(std::span<const Variables> others, const Unknown& condition, Unknowns& unknowns);

 private:
  std::map<std::string, Variable, std::less<>> all_;
  std::vector<std::string> order_;
  std::set<std::string> given_;
};

}  // namespace tandem::scenarios::shell
