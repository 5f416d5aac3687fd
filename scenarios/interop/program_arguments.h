#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/interop/shell_words.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Holds a program's `--name value..` arguments, of which the last with a name counts. An argument that was asked for by name is
/// known; `unknown` tells the others. All throw InputError.
class ProgramArguments {
 public:
  /// Words before the first argument, such as the program's name, are passed over.
  ProgramArguments(const std::string& text, const std::string& file);
  /// Holds nothing yet: for what other files say in the words of the program.
  explicit ProgramArguments(std::string file) : file_(std::move(file)) {}

  /// Adds an argument, in place of an earlier one of its name.
  void set(const std::string& name, std::vector<std::string> values, Place place);
  void remove(std::string_view name);

  bool has(std::string_view name);
  /// Returns where the argument stands, or the file where there is none.
  Place place(std::string_view name);
  std::string text(std::string_view name, const std::string& fallback = "");
  const std::vector<std::string>& values(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  std::int64_t required_integer(std::string_view name, const std::string& what);
  double number(std::string_view name, double fallback);

  /// Puts the argument's value, or `fallback`, into a mapping of a scenario.
  void copy_integer(YamlNode& to, std::string_view key, std::string_view name, std::int64_t fallback);

  /// Returns the names of all, in their order, without dashes.
  const std::vector<std::string>& names() const { return order_; }
  /// Returns the arguments that nothing asked for, in their order: "--lr".
  std::vector<std::string> unknown() const;

 private:
  struct Argument {
    std::vector<std::string> values;
    Place place;
    bool known = false;
  };
  std::string file_;
  std::vector<std::string> order_;
  std::map<std::string, Argument, std::less<>> arguments_;

  Argument* find(std::string_view name);
};

}  // namespace tandem::scenarios
