#include <algorithm>
#include <string>

#include "scenarios/shell/parse.h"

namespace tandem::scenarios::shell {
namespace {

constexpr int deepest_word = 50;

class WordReader {
 public:
  WordReader(Cursor& cursor, WordContext context, int depth) : cursor_(cursor), context_(context), depth_(depth) {
    if (depth > deepest_word) throw InputError(cursor.place(), "expansions are nested too deeply, expected 50 at most");
  }

  Word all() {
    Word word{.parts = {}, .place = cursor_.place()};
    while (!cursor_.done() && !ends(cursor_.peek())) piece(word);
    return word;
  }

  /// Of ${..}: up to its bracket, which stays.
  Word operand(bool quoted) {
    Word word{.parts = {}, .place = cursor_.place()};
    in_braces_ = true;
    while (!cursor_.done() && cursor_.peek() != '}') {
      if (quoted) {
        quoted_piece(word);
      } else {
        piece(word);
      }
    }
    return word;
  }

  Word quoted_text() {
    Word word{.parts = {}, .place = cursor_.place()};
    whole_ = true;
    while (!cursor_.done()) quoted_piece(word);
    return word;
  }

 private:
  Cursor& cursor_;
  WordContext context_;
  int depth_;
  bool in_braces_ = false;
  bool whole_ = false;  ///< a quote is a character like others

  bool ends(char c) const {
    if (in_braces_) return false;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return true;
    switch (context_) {
      case WordContext::argument:
        return false;
      case WordContext::condition:
        return c == '(' || c == ')';
      case WordContext::command:
      case WordContext::pattern:
        return c == ';' || c == '&' || c == '|' || c == '<' || c == '>' || c == ')';
    }
    return false;
  }

  static void add(Word& word, bool quoted, std::string_view text) {
    if (word.parts.empty() || word.parts.back().kind != WordPart::Kind::literal || word.parts.back().quoted != quoted)
      word.parts.push_back({.kind = WordPart::Kind::literal, .quoted = quoted, .place = word.place});
    word.parts.back().text += text;
  }

  void piece(Word& word) {
    const char c = cursor_.peek();
    if (c == '\\') {
      escape(word);
    } else if (c == '\'') {
      single_quotes(word);
    } else if (c == '"') {
      double_quotes(word);
    } else if (c == '$') {
      dollar(word, false);
    } else if (c == '`') {
      backquotes(word, false);
    } else if (c == '(' && context_ != WordContext::pattern && !in_braces_) {
      brackets(word);
    } else {
      add(word, false, std::string(1, cursor_.next()));
    }
  }

  void escape(Word& word) {
    cursor_.next();
    if (cursor_.done()) return add(word, true, "\\");
    const char c = cursor_.next();
    if (c == '\r' && cursor_.peek() == '\n') {
      cursor_.next();
    } else if (c != '\n') {
      add(word, true, std::string(1, c));
    }
  }

  void single_quotes(Word& word) {
    const Place opened = cursor_.place();
    cursor_.next();
    add(word, true, "");
    while (!cursor_.done() && cursor_.peek() != '\'') add(word, true, std::string(1, cursor_.next()));
    close_quote(opened);
  }

  void double_quotes(Word& word) {
    const Place opened = cursor_.place();
    cursor_.next();
    if (cursor_.peek() == '"') add(word, true, "");  // "" is a word, "${A[@]}" without values is none
    while (!cursor_.done() && cursor_.peek() != '"') quoted_piece(word);
    close_quote(opened);
  }

  void close_quote(const Place& opened) {
    if (cursor_.done()) throw InputError(opened, "nothing closes this quote, expected another one");
    cursor_.next();
  }

  void quoted_piece(Word& word) {
    const char c = cursor_.peek();
    if (c == '\\') {
      cursor_.next();
      const char escaped = cursor_.peek();
      if (escaped == '\n') {
        cursor_.next();
      } else if (escaped == '$' || escaped == '`' || escaped == '"' || escaped == '\\' || (in_braces_ && escaped == '}')) {
        add(word, true, std::string(1, cursor_.next()));
      } else {
        add(word, true, "\\");
      }
    } else if (c == '$') {
      dollar(word, true);
    } else if (c == '`') {
      backquotes(word, true);
    } else if (c == '"' && in_braces_ && !whole_) {
      double_quotes(word);
    } else {
      add(word, true, std::string(1, cursor_.next()));
    }
  }

  /// No shell has an open bracket in a word, but lists such as ([0]*3+[1]*58) are written so.
  void brackets(Word& word) {
    const Place opened = cursor_.place();
    cursor_.next();
    add(word, true, "(" + cursor_.up_to('(', ')', opened) + ")");
  }

  void backquotes(Word& word, bool quoted) {
    const Place opened = cursor_.place();
    cursor_.next();
    std::string text;
    while (!cursor_.done() && cursor_.peek() != '`') {
      if (cursor_.peek() == '\\' && (cursor_.peek(1) == '`' || cursor_.peek(1) == '\\' || cursor_.peek(1) == '$')) cursor_.next();
      text += cursor_.next();
    }
    close_quote(opened);
    word.parts.push_back({.kind = WordPart::Kind::substitution, .quoted = quoted, .text = text, .place = opened});
  }

  void dollar(Word& word, bool quoted) {
    const Place place = cursor_.place();
    cursor_.next();
    const char c = cursor_.peek();
    if (c == '\'' && !quoted) return ansi_quotes(word);
    if (c == '"' && !quoted) return double_quotes(word);
    if (c == '{') {
      cursor_.next();
      word.parts.push_back(braces(quoted, place));
    } else if (cursor_.sees("((")) {
      arithmetic_or_substitution(word, quoted, place);
    } else if (c == '(') {
      cursor_.next();
      word.parts.push_back(
          {.kind = WordPart::Kind::substitution, .quoted = quoted, .text = cursor_.up_to('(', ')', place), .place = place});
    } else if (c == '[') {  // the older way to write $((..))
      cursor_.next();
      word.parts.push_back(
          {.kind = WordPart::Kind::arithmetic, .quoted = quoted, .text = cursor_.up_to('[', ']', place), .place = place});
    } else if (const std::string name = parameter_name(false); !name.empty()) {
      word.parts.push_back({.kind = WordPart::Kind::parameter, .quoted = quoted, .text = name, .place = place});
    } else {
      add(word, quoted, "$");
    }
  }

  void arithmetic_or_substitution(Word& word, bool quoted, const Place& place) {
    Cursor ahead = cursor_;
    ahead.skip(2);
    const std::string inner = ahead.up_to('(', ')', place);
    if (ahead.peek() == ')') {
      ahead.next();
      cursor_ = ahead;
      word.parts.push_back({.kind = WordPart::Kind::arithmetic, .quoted = quoted, .text = inner, .place = place});
      return;
    }
    cursor_.next();
    word.parts.push_back(
        {.kind = WordPart::Kind::substitution, .quoted = quoted, .text = cursor_.up_to('(', ')', place), .place = place});
  }

  void ansi_quotes(Word& word) {
    const Place opened = cursor_.place();
    cursor_.next();
    add(word, true, "");
    while (!cursor_.done() && cursor_.peek() != '\'') {
      char c = cursor_.next();
      if (c == '\\' && !cursor_.done()) {
        const char named = cursor_.next();
        constexpr std::string_view letters = "ntr";
        const std::size_t at = letters.find(named);
        c = at == std::string_view::npos ? named : std::string_view("\n\t\r")[at];
      }
      add(word, true, std::string(1, c));
    }
    close_quote(opened);
  }

  /// The longest name, digit or sign that is one; many digits in braces alone.
  std::string parameter_name(bool in_braces) {
    std::string name;
    const char c = cursor_.peek();
    if (begins_name(c)) {
      while (begins_name(cursor_.peek()) || is_digit(cursor_.peek())) name += cursor_.next();
    } else if (is_digit(c)) {
      do name += cursor_.next();
      while (in_braces && is_digit(cursor_.peek()));
    } else if (c != '\0' && std::string_view("@*#?$!-").find(c) != std::string_view::npos) {
      name = cursor_.next();
    }
    return name;
  }

  WordPart braces(bool quoted, const Place& place) {
    WordPart part{.kind = WordPart::Kind::parameter, .quoted = quoted, .place = place};
    if (cursor_.peek() == '#' && cursor_.peek(1) != '}' && cursor_.peek(1) != ':') {
      part.length = true;
      cursor_.next();
    } else if (cursor_.peek() == '!' && begins_name(cursor_.peek(1))) {
      part.indirect = true;
      cursor_.next();
    }
    part.text = parameter_name(true);
    if (part.text.empty()) throw InputError(place, "${ is followed by no name, expected one such as ${NAME}");
    if (cursor_.peek() == '[') {
      const Place opened = cursor_.place();
      cursor_.next();
      part.subscript = cursor_.up_to('[', ']', opened);
    }
    operation(part);
    if (cursor_.peek() != '}' || cursor_.done()) throw InputError(place, "nothing closes ${" + part.text + ", expected }");
    cursor_.next();
    return part;
  }

  void operation(WordPart& part) {
    constexpr std::string_view operations[] = {":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,",
                                               "@",  "-",  "=",  "+",  "?",  "#",  "%",  "/",  ":",  "^",  ","};
    for (const std::string_view one : operations) {
      if (!cursor_.sees(one)) continue;
      part.operation = one;
      cursor_.skip(one.size());
      WordReader inside(cursor_, context_, depth_ + 1);
      // A pattern is one between double quotes, too.
      const bool is_pattern = std::string_view("#%/").find(one[0]) != std::string_view::npos;
      part.operand = std::make_shared<Word>(inside.operand(part.quoted && !is_pattern));
      return;
    }
  }
};

}  // namespace

Word parse_word(Cursor& cursor, WordContext context) { return WordReader(cursor, context, 0).all(); }

Word parse_quoted(std::string_view text, const Place& place) {
  Cursor cursor(text, place);
  return WordReader(cursor, WordContext::argument, 0).quoted_text();
}

bool is_name(std::string_view text) {
  return !text.empty() && begins_name(text[0]) && std::ranges::all_of(text, [](char c) { return begins_name(c) || is_digit(c); });
}

}  // namespace tandem::scenarios::shell
