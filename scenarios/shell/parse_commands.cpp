#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/shell/parse.h"

namespace tandem::scenarios::shell {
namespace {

using CommandPtr = std::shared_ptr<Command>;
using Kind = Command::Kind;

constexpr int deepest_command = 100;

class ScriptReader {
 public:
  ScriptReader(std::string_view text, const Place& from) : cursor_(text, from) {}

  CommandPtr all() {
    CommandPtr script = sequence({});
    if (!cursor_.done()) unexpected("a command");
    return script;
  }

 private:
  Cursor cursor_;
  int depth_ = 0;

  [[noreturn]] void unexpected(const std::string& expected) const {
    Cursor ahead = cursor_;
    const std::string found = ahead.done() ? "the end" : excerpt(ahead.line());
    throw InputError(cursor_.place(), "found " + found + " in a shell script, expected " + expected);
  }

  CommandPtr make(Kind kind) const { return std::make_shared<Command>(Command{.kind = kind, .place = cursor_.place()}); }

  /// The keyword here, if it is one of `words`.
  std::string keyword(std::initializer_list<std::string_view> words) const {
    for (const std::string_view word : words) {
      if (!cursor_.sees(word)) continue;
      const char after = cursor_.peek(word.size());
      if (after == '\0' || std::string_view(" \t\r\n;&|()<>").find(after) != std::string_view::npos) return std::string(word);
    }
    return {};
  }

  void take(std::string_view word) {
    cursor_.skip_lines();
    if (keyword({word}).empty()) unexpected("`" + std::string(word) + "`");
    cursor_.skip(word.size());
  }

  bool take_sign(std::string_view sign) {
    cursor_.skip_blanks();
    if (!cursor_.sees(sign)) return false;
    cursor_.skip(sign.size());
    return true;
  }

  /// Commands up to one of the keywords, or to what closes a bracket or a case.
  CommandPtr sequence(std::initializer_list<std::string_view> ends) {
    if (++depth_ > deepest_command) throw InputError(cursor_.place(), "commands are nested more than 100 deep");
    CommandPtr list = make(Kind::sequence);
    for (;;) {
      cursor_.skip_lines();
      if (cursor_.done() || cursor_.peek() == ')' || cursor_.sees(";;") || !keyword(ends).empty()) break;
      list->children.push_back(and_or());
      cursor_.skip_blanks();
      if (cursor_.sees(";;")) break;
      if (cursor_.peek() == ';' || cursor_.peek() == '&') cursor_.next();
    }
    --depth_;
    return list;
  }

  CommandPtr and_or() {
    CommandPtr left = pipeline();
    for (;;) {
      cursor_.skip_blanks();
      const Kind kind = cursor_.sees("&&") ? Kind::both : Kind::either;
      if (kind == Kind::either && !cursor_.sees("||")) return left;
      const CommandPtr joined = make(kind);
      cursor_.skip(2);
      cursor_.skip_lines();
      joined->children = {left, pipeline()};
      left = joined;
    }
  }

  CommandPtr pipeline() {
    cursor_.skip_blanks();
    if (!keyword({"!"}).empty()) {
      CommandPtr negation = make(Kind::negation);
      cursor_.skip(1);
      negation->children.push_back(pipeline());
      return negation;
    }
    CommandPtr first = command();
    CommandPtr pipe;
    for (;;) {
      cursor_.skip_blanks();
      if (cursor_.peek() != '|' || cursor_.sees("||")) return pipe ? pipe : first;
      if (!pipe) {
        pipe = make(Kind::pipeline);
        pipe->children.push_back(first);
      }
      cursor_.skip(cursor_.sees("|&") ? 2 : 1);
      cursor_.skip_lines();
      pipe->children.push_back(command());
    }
  }

  CommandPtr command() {
    cursor_.skip_blanks();
    if (cursor_.sees("((")) return arithmetic();
    if (cursor_.peek() == '(') return bracketed();
    const std::string word = keyword({"if", "case", "for", "while", "until", "{", "[[", "function", "select", "time"});
    CommandPtr made;
    if (word.empty()) return simple();
    if (word == "if") {
      made = conditional();
    } else if (word == "case") {
      made = choice();
    } else if (word == "for" || word == "select") {
      made = iteration(word.size());
    } else if (word == "while" || word == "until") {
      made = loop(word);
    } else if (word == "{") {
      cursor_.skip(1);
      made = sequence({"}"});
      take("}");
    } else if (word == "[[") {
      return test();
    } else if (word == "time") {
      cursor_.skip(word.size());
      return pipeline();
    } else {
      cursor_.skip(word.size());
      cursor_.skip_blanks();
      return function(parse_word(cursor_, WordContext::pattern));
    }
    redirections(*made);
    return made;
  }

  CommandPtr arithmetic() {
    CommandPtr made = make(Kind::arithmetic);
    cursor_.skip(2);
    made->text = cursor_.up_to('(', ')', made->place);
    if (!take_sign(")")) unexpected("`))`");
    return made;
  }

  CommandPtr bracketed() {
    CommandPtr made = make(Kind::subshell);
    cursor_.skip(1);
    made->children.push_back(sequence({}));
    cursor_.skip_lines();
    if (!take_sign(")")) unexpected("`)`");
    redirections(*made);
    return made;
  }

  CommandPtr conditional() {
    CommandPtr made = make(Kind::conditional);
    cursor_.skip(2);
    for (;;) {
      made->children.push_back(sequence({"then"}));
      take("then");
      made->children.push_back(sequence({"elif", "else", "fi"}));
      if (keyword({"elif"}).empty()) break;
      cursor_.skip(4);
    }
    if (!keyword({"else"}).empty()) {
      cursor_.skip(4);
      made->children.push_back(sequence({"fi"}));
    }
    take("fi");
    return made;
  }

  CommandPtr choice() {
    CommandPtr made = make(Kind::choice);
    cursor_.skip(4);
    cursor_.skip_blanks();
    made->words.push_back(parse_word(cursor_, WordContext::command));
    take("in");
    for (;;) {
      cursor_.skip_lines();
      if (!keyword({"esac"}).empty()) break;
      if (cursor_.done()) unexpected("`esac`");
      if (cursor_.peek() == '(') cursor_.next();
      std::vector<Word> patterns;
      do {
        cursor_.skip_lines();
        patterns.push_back(parse_word(cursor_, WordContext::pattern));
        if (patterns.back().parts.empty()) unexpected("a pattern");
      } while (take_sign("|"));
      if (!take_sign(")")) unexpected("`)` behind a pattern");
      made->patterns.push_back(std::move(patterns));
      made->children.push_back(sequence({"esac"}));
      cursor_.skip_lines();
      if (cursor_.sees(";;")) cursor_.skip(cursor_.sees(";;&") ? 3 : 2);
    }
    take("esac");
    return made;
  }

  CommandPtr iteration(std::size_t length) {
    CommandPtr made = make(Kind::iteration);
    cursor_.skip(length);
    cursor_.skip_blanks();
    if (cursor_.sees("((")) {
      cursor_.skip(2);
      made->text = cursor_.up_to('(', ')', made->place);
      if (!take_sign(")")) unexpected("`))`");
    } else {
      made->words.push_back(parse_word(cursor_, WordContext::command));
      cursor_.skip_lines();
      if (keyword({"in"}).empty()) {
        made->words.push_back(parse_quoted("$@", made->place));
      } else {
        cursor_.skip(2);
        arguments(*made);
      }
    }
    take_sign(";");
    take("do");
    made->children.push_back(sequence({"done"}));
    take("done");
    return made;
  }

  CommandPtr loop(const std::string& word) {
    CommandPtr made = make(Kind::loop);
    made->until = word == "until";
    cursor_.skip(word.size());
    made->children.push_back(sequence({"do"}));
    take("do");
    made->children.push_back(sequence({"done"}));
    take("done");
    return made;
  }

  CommandPtr test() {
    CommandPtr made = make(Kind::test);
    cursor_.skip(2);
    for (;;) {
      cursor_.skip_lines();
      if (cursor_.done()) throw InputError(made->place, "nothing closes [[, expected ]]");
      if (!keyword({"]]"}).empty()) break;
      const Place place = cursor_.place();
      if (cursor_.peek() == '(' || cursor_.peek() == ')') {
        const std::string sign(1, cursor_.next());
        made->words.push_back({.parts = {{.text = sign, .place = place}}, .place = place});
      } else {
        made->words.push_back(parse_word(cursor_, WordContext::condition));
        if (made->words.back().plain() == "=~") regular_expression(*made);
      }
    }
    cursor_.skip(2);
    return made;
  }

  /// Which may have any signs but blanks.
  void regular_expression(Command& made) {
    cursor_.skip_blanks();
    made.words.push_back(parse_word(cursor_, WordContext::argument));
  }

  CommandPtr function(const Word& name) {
    CommandPtr made = make(Kind::function);
    made->words.push_back(name);
    if (take_sign("(") && !take_sign(")")) unexpected("`()` behind the name of a function");
    cursor_.skip_lines();
    made->children.push_back(command());
    return made;
  }

  CommandPtr simple() {
    CommandPtr made = make(Kind::simple);
    arguments(*made);
    if (made->words.size() == 1 && made->assignments.empty() && cursor_.peek() == '(' && is_function_name(made->words[0].plain()))
      return function(made->words[0]);
    if (made->words.empty() && made->assignments.empty() && made->here_documents.empty() && made->text.empty())
      unexpected("a command");
    return made;
  }

  static bool is_function_name(const std::string& name) { return !name.empty(); }

  static bool declares(const Command& command) {
    constexpr std::array names = {"export", "declare", "local", "readonly", "typeset"};
    return !command.words.empty() && std::ranges::find(names, command.words[0].plain()) != names.end();
  }

  /// Assignments, words and redirections up to the end of a command.
  void arguments(Command& command) {
    for (;;) {
      cursor_.skip_blanks();
      const char c = cursor_.peek();
      if (cursor_.done() || c == '\n' || c == ';' || c == '|' || c == ')') return;
      if (c == '&' && cursor_.peek(1) != '>') return;
      if (c == '#') {
        cursor_.skip_comment();
        return;
      }
      if (redirection(command)) continue;
      if (c == '(' && command.words.size() == 1 && command.kind == Kind::simple) return;  // name ()
      if ((command.words.empty() || declares(command)) && command.kind == Kind::simple && assignment(command)) continue;
      command.words.push_back(word_of_command(command));
    }
  }

  /// The name of a function ends at its brackets.
  Word word_of_command(const Command& command) {
    if (!command.words.empty() || command.kind != Kind::simple) return parse_word(cursor_, WordContext::command);
    Cursor ahead = cursor_;
    std::string name;
    while (!ahead.done() && std::string_view(" \t\r\n;&|()<>\"'$`\\").find(ahead.peek()) == std::string_view::npos)
      name += ahead.next();
    const Place place = cursor_.place();
    if (name.empty() || !ahead.sees("()")) return parse_word(cursor_, WordContext::command);
    cursor_ = ahead;
    return {.parts = {{.text = name, .place = place}}, .place = place};
  }

  bool assignment(Command& command) {
    Cursor ahead = cursor_;
    Assignment made{.name = {}, .place = cursor_.place()};
    while (begins_name(ahead.peek()) || (is_digit(ahead.peek()) && !made.name.empty())) made.name += ahead.next();
    if (made.name.empty()) return false;
    if (ahead.peek() == '[') {
      const Place opened = ahead.place();
      ahead.next();
      Cursor probe = ahead;
      const std::string rest = probe.line();
      const std::size_t closed = rest.find(']');
      if (closed == std::string::npos || (rest.substr(closed + 1, 1) != "=" && rest.substr(closed + 1, 2) != "+=")) return false;
      made.key = std::make_shared<Word>(parse_quoted(ahead.up_to('[', ']', opened), opened));
    }
    if (ahead.sees("+=")) {
      made.appends = true;
      ahead.next();
    }
    if (ahead.peek() != '=') return false;
    ahead.next();
    cursor_ = ahead;
    if (cursor_.peek() == '(' && !made.key) {
      array(made);
    } else if (ends_value(cursor_.peek())) {
      made.values.push_back({.parts = {}, .place = cursor_.place()});
    } else {
      made.values.push_back(parse_word(cursor_, WordContext::command));
    }
    command.assignments.push_back(std::move(made));
    return true;
  }

  bool ends_value(char c) const { return cursor_.done() || std::string_view(" \t\r\n;&|)").find(c) != std::string_view::npos; }

  void array(Assignment& made) {
    const Place opened = cursor_.place();
    made.is_array = true;
    cursor_.next();
    for (;;) {
      cursor_.skip_lines();
      if (cursor_.done()) throw InputError(opened, "nothing closes the array " + made.name + ", expected `)`");
      if (cursor_.peek() == ')') break;
      if (std::string_view(";&|<>").find(cursor_.peek()) != std::string_view::npos) unexpected("a value of the array");
      made.keys.push_back(key_of_value());
      made.values.push_back(ends_value(cursor_.peek()) ? Word{.parts = {}, .place = cursor_.place()}
                                                       : parse_word(cursor_, WordContext::command));
    }
    cursor_.next();
  }

  /// [key]= before a value of an array.
  std::shared_ptr<Word> key_of_value() {
    if (cursor_.peek() != '[') return {};
    Cursor ahead = cursor_;
    const std::string rest = ahead.line();
    const std::size_t closed = rest.find("]=");
    if (closed == std::string::npos || rest.find_first_of(" \t") < closed) return {};
    const Place opened = cursor_.place();
    cursor_.next();
    auto key = std::make_shared<Word>(parse_quoted(cursor_.up_to('[', ']', opened), opened));
    cursor_.next();
    return key;
  }

  void redirections(Command& command) {
    for (;;) {
      cursor_.skip_blanks();
      if (cursor_.done() || !redirection(command)) return;
    }
  }

  /// Where output goes says nothing; what a here-document holds may.
  bool redirection(Command& command) {
    std::size_t digits = 0;
    while (is_digit(cursor_.peek(digits))) ++digits;
    const char sign = cursor_.peek(digits);
    const bool both = digits == 0 && cursor_.sees("&>");
    if (sign != '<' && sign != '>' && !both) return false;
    if (sign == '<' && cursor_.peek(digits + 1) == '(') return process(digits);
    cursor_.skip(digits);
    if (cursor_.sees("<<<")) {
      cursor_.skip(3);
    } else if (cursor_.sees("<<")) {
      here_document(command);
      return true;
    } else {
      while (!cursor_.done() && std::string_view("<>&|").find(cursor_.peek()) != std::string_view::npos) cursor_.next();
    }
    cursor_.skip_blanks();
    if (cursor_.sees(">(") || cursor_.sees("<(")) return process(0);
    if (!ends_value(cursor_.peek())) parse_word(cursor_, WordContext::command);
    if (command.text.empty() && command.words.empty()) command.text = "redirection";
    return true;
  }

  /// <(command) and >(command), which are files.
  bool process(std::size_t digits) {
    const Place opened = cursor_.place();
    cursor_.skip(digits + 2);
    cursor_.up_to('(', ')', opened);
    return true;
  }

  void here_document(Command& command) {
    cursor_.skip(2);
    const bool strips = cursor_.peek() == '-';
    if (strips) cursor_.next();
    cursor_.skip_blanks();
    const Word delimiter = parse_word(cursor_, WordContext::command);
    std::string name;
    bool quoted = false;
    for (const WordPart& part : delimiter.parts) {
      name += part.text;
      quoted = quoted || part.quoted;
    }
    if (name.empty()) unexpected("the word that ends a here-document");
    command.here_documents.push_back(cursor_.here_document(name, strips, !quoted));
  }
};

}  // namespace

std::shared_ptr<Command> parse_script(std::string_view text, const Place& from) { return ScriptReader(text, from).all(); }

}  // namespace tandem::scenarios::shell
