#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::scenarios::shell {

/// What a script does not say by itself.
struct Unknown {
  enum class Kind : std::uint8_t {
    unset,      ///< a variable or positional parameter that nothing sets
    output,     ///< of a command, which is not run
    condition,  ///< a value that depends on one
    stray,      ///< a mark that stands for nothing: a file had the control character
  };
  Kind kind = Kind::unset;
  std::string what = {};     ///< "$TP", "the output of `nproc`", "the condition `-f data`"
  std::string setting = {};  ///< what to give: "TP"; empty where no variable would tell
  Place place = {};
  std::vector<std::string> words = {};  ///< of a condition: what it decides on, in any case

  /// "$TP, which nothing sets, expected --env TP=VALUE"
  std::string sentence() const;
};

/// Texts in which what is not known stands as marks, that no script has by itself.
class Unknowns {
 public:
  /// Returns the mark that stands for it.
  std::string add(Unknown unknown);

  static bool has(std::string_view text);
  /// Whether nothing but one mark is in the text.
  static bool is_one(std::string_view text);
  /// Whether the text is empty but for variables that nothing sets. `known`: false where that is open.
  bool is_empty(std::string_view text, bool& known) const;

  /// The first one of a text that has one.
  const Unknown& first_of(std::string_view text) const;
  std::vector<const Unknown*> all_of(std::string_view text) const;
  /// The text for people: $TP where it is not known.
  std::string readable(std::string_view text) const;

 private:
  std::vector<Unknown> all_;
};

inline constexpr char mark_begin = '\x01', mark_end = '\x02';

}  // namespace tandem::scenarios::shell
