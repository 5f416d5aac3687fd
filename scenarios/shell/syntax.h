#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::scenarios::shell {

// A shell script as the POSIX grammar has it, with bash's arrays, `[[ ]]` and `(( ))`.

struct Word;

/// A piece of a word, before anything in it is expanded.
struct WordPart {
  enum class Kind : std::uint8_t {
    literal,       ///< `text`
    parameter,     ///< ${text[subscript] operation operand}
    arithmetic,    ///< $((text))
    substitution,  ///< $(text) or `text`
  };
  Kind kind = Kind::literal;
  bool quoted = false;
  std::string text = {};
  std::string subscript = {};  ///< "@", "*", or an expression
  bool length = false;         ///< ${#text}
  bool indirect = false;       ///< ${!text}
  std::string operation = {};  ///< ":-", "-", ":=", "=", ":+", "+", ":?", "?", "#", "##", "%", "%%", "/", "//", ":", "^^", ",,"
  std::shared_ptr<Word> operand = {};
  Place place = {};
};

struct Word {
  std::vector<WordPart> parts;
  Place place;

  /// The text of a word that is all literal and unquoted, as keywords are; else nothing.
  std::string plain() const {
    return parts.size() == 1 && parts[0].kind == WordPart::Kind::literal && !parts[0].quoted ? parts[0].text : std::string();
  }
};

/// name=value, name+=value, name[key]=value, name=(values)
struct Assignment {
  std::string name;
  std::shared_ptr<Word> key = {};
  bool appends = false;
  bool is_array = false;
  std::vector<Word> values = {};                 ///< one where it is no array
  std::vector<std::shared_ptr<Word>> keys = {};  ///< of an array's values, null where they have none
  Place place = {};
};

struct HereDocument {
  std::string text;
  bool expands = true;
};

struct Command {
  enum class Kind : std::uint8_t {
    simple,       ///< assignments and words
    sequence,     ///< children one after the other
    both,         ///< && of two children
    either,       ///< || of two children
    negation,     ///< ! of a child
    pipeline,     ///< children side by side
    conditional,  ///< if: condition, body, condition, body, .., and a last body where there is an else
    choice,       ///< case: a child for each of `patterns`, of words[0]
    iteration,    ///< for: words[0] is the variable, the others its values; one child
    loop,         ///< while: condition and body
    subshell,     ///< ( child )
    function,     ///< words[0] is its name; one child
    test,         ///< [[ words ]]
    arithmetic,   ///< (( text ))
  };
  Kind kind = Kind::simple;
  Place place = {};
  std::vector<Assignment> assignments = {};
  std::vector<Word> words = {};
  std::vector<std::shared_ptr<HereDocument>> here_documents = {};
  std::vector<std::shared_ptr<Command>> children = {};
  std::vector<std::vector<Word>> patterns = {};
  std::string text = {};
  bool until = false;  ///< a loop that goes on while its condition is false
};

}  // namespace tandem::scenarios::shell
