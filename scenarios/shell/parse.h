#pragma once

#include <memory>
#include <string_view>

#include "scenarios/shell/cursor.h"
#include "scenarios/shell/syntax.h"

namespace tandem::scenarios::shell {

/// Where a word stands, which says what ends it.
enum class WordContext : std::uint8_t {
  command,    ///< ended by blanks and by what joins commands
  condition,  ///< of [[ ]]: brackets, < and > stand by themselves, and a regular expression may have what joins commands
  argument,   ///< of a list of arguments that is no script: ended by blanks alone
  pattern,    ///< of a case: ended by | and ), too
};

/// Reads a word at the cursor, which is at its first character. Throws InputError where a quote or bracket is never closed.
Word parse_word(Cursor& cursor, WordContext context);

/// Reads all of a text as if it stood between double quotes.
Word parse_quoted(std::string_view text, const Place& place);

/// Reads a script. Throws InputError at what is no shell syntax, or none that is read here.
std::shared_ptr<Command> parse_script(std::string_view text, const Place& from);

/// Returns whether it is a variable's name.
bool is_name(std::string_view text);
constexpr bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace tandem::scenarios::shell
