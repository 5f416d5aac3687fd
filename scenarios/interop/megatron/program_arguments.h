#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/interop/launch/launch.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Holds a program's `--name value..` arguments, of which the last with a name counts. An argument that was asked for by name is
/// known; `unknown` tells the others. All throw InputError, also where a value that is asked for depends on what the script does
/// not say.
class ProgramArguments {
 public:
  ProgramArguments(Launch launch, const std::string& file);

  const Launch& launch() const { return launch_; }

  bool has(std::string_view name);
  /// Returns where the argument stands, or the file where there is none.
  Place place(std::string_view name);
  std::string text(std::string_view name, const std::string& fallback = "");
  /// Where the value depends on what the script does not say, what it is but for that.
  std::string known_text(std::string_view name);
  std::vector<std::string> values(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  std::int64_t required_integer(std::string_view name, const std::string& what);
  double number(std::string_view name, double fallback);

  /// Puts the argument's value, or `fallback`, into a mapping of a scenario.
  void copy_integer(YamlNode& to, std::string_view key, std::string_view name, std::int64_t fallback);

  /// Returns the names of all, in their order, without dashes.
  const std::vector<std::string>& names() const { return order_; }
  /// Returns the arguments that nothing asked for, in their order, without dashes: "lr".
  std::vector<std::string> unknown() const;

  /// Variables in the place of whole arguments, that nothing sets: sentences on what was taken for them.
  std::vector<std::string> empty_extras() const;

 private:
  struct Argument {
    std::vector<shell::Text> values = {};
    Place place = {};
    bool known = false;
    bool valued = false;  ///< its value was asked for
  };
  Launch launch_;
  std::string file_;
  std::vector<std::string> order_;
  std::map<std::string, Argument, std::less<>> arguments_;

  Argument* find(std::string_view name);
  void read_words();
  /// A word that is whole arguments, which of them a condition decides.
  void check_decided(const shell::Text& word) const;
  [[noreturn]] void fail_unknown(const std::string& name, const Place& place, const std::string& text) const;
  /// "; and --env A, B for other arguments"
  std::string other_settings(const std::string& setting) const;
};

}  // namespace tandem::scenarios
