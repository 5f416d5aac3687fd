#include "scenarios/shell/evaluate.h"

#include <utility>

#include "scenarios/shell/interpreter.h"
#include "scenarios/shell/parse.h"

namespace tandem::scenarios::shell {
namespace {

void refuse_marks(const std::string& text, const std::string& file) {
  int line = 1, column = 1;
  for (const char c : text) {
    if (c == mark_begin || c == mark_end || c == '\0')
      throw InputError({.file = file, .line = line, .column = column}, "found a control character, expected text");
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
}

}  // namespace

Evaluated evaluate_script(const std::string& text, const std::string& file, std::span<const std::string> given) {
  refuse_marks(text, file);
  Evaluated evaluated;
  evaluated.variables = Variables(given);
  Interpreter(file, evaluated).run_script(text, {.file = file});
  return evaluated;
}

Evaluated evaluate_arguments(const std::string& text, const std::string& file, std::span<const std::string> given) {
  refuse_marks(text, file);
  Evaluated evaluated;
  evaluated.variables = Variables(given);
  Interpreter interpreter(file, evaluated);
  Cursor cursor(text, {.file = file});
  Started started{.words = {}, .place = {.file = file}};
  for (cursor.skip_lines(); !cursor.done(); cursor.skip_lines()) {
    const Word word = parse_word(cursor, WordContext::argument);
    for (Text& one : interpreter.expand_words({word})) {
      one.place = word.place;
      started.words.push_back(std::move(one));
    }
  }
  evaluated.started.push_back(std::move(started));
  return evaluated;
}

TextExpander::TextExpander(std::span<const std::string> given, const std::vector<std::pair<std::string, Text>>& defaults) {
  evaluated_.variables = Variables(given);
  for (const auto& [name, value] : defaults) evaluated_.variables.set(name, {.items = {value}});
}

std::string TextExpander::expand(const std::string& text, const Place& place) {
  refuse_marks(text, place.file);
  return Interpreter(place.file, evaluated_).expand_text(parse_quoted(text, place));
}

}  // namespace tandem::scenarios::shell
