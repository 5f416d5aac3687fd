#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/shell/unknown.h"
#include "scenarios/shell/variables.h"

namespace tandem::scenarios::shell {

/// A program that a script starts.
struct Started {
  std::vector<Text> words = {};  ///< the program's name, and its arguments
  Place place = {};
  std::string condition = {};  ///< whether it is started depends on this one; empty: it is
};

/// What becomes of a script.
struct Evaluated {
  std::vector<Started> started;
  Variables variables;
  Unknowns unknowns;
  std::vector<std::string> assumed;  ///< sentences
  std::vector<std::string> missing;  ///< sentences on files that it reads and that are not there
  std::string ended;                 ///< where and why it ends before its last line; empty: it does not
};

/// Follows a script of bash without starting anything: variables, arrays, arithmetic, conditions, loops, functions and files that
/// it reads with `source` from its own folder. What a command prints is not known, nor whether it succeeds; what depends on that,
/// or on a variable that nothing sets, is marked as unknown. Where a condition is not known, each way is followed, and what they
/// differ in is marked. Tests for an empty variable (-z, -n, :-) take what nothing sets as empty, as bash does, and say so.
///
/// `given`: variables as "NAME=VALUE", positional parameters as "1=VALUE". Throws InputError at what is no shell script, at an
/// expression that bash would refuse, and where following takes too long.
Evaluated evaluate_script(const std::string& text, const std::string& file, std::span<const std::string> given);

/// Splits a list of arguments that is no script (lines, comments, quotes, brackets) and puts in variables.
Evaluated evaluate_arguments(const std::string& text, const std::string& file, std::span<const std::string> given);

/// Puts variables into texts that are no scripts.
class TextExpander {
 public:
  /// `defaults`: variables below those that are given.
  TextExpander(std::span<const std::string> given, const std::vector<std::pair<std::string, Text>>& defaults);
  std::string expand(const std::string& text, const Place& place);
  Evaluated take() { return std::move(evaluated_); }

 private:
  Evaluated evaluated_;
};

}  // namespace tandem::scenarios::shell
