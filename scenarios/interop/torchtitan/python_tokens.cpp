#include "scenarios/interop/torchtitan/python_tokens.h"

#include <array>
#include <cctype>
#include <string_view>

namespace tandem::scenarios {
namespace {

class PythonLexer {
 public:
  PythonLexer(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<PythonToken> all() {
    while (at_ < text_.size()) {
      if (line_begins_) indentation();
      if (at_ < text_.size()) next();
    }
    if (!line_begins_) add(PythonToken::Kind::newline, "\n");
    for (; indents_.size() > 1; indents_.pop_back()) add(PythonToken::Kind::dedent, "");
    add(PythonToken::Kind::end, "the end of the file");
    return std::move(tokens_);
  }

 private:
  const std::string& text_;
  std::string file_;
  std::vector<PythonToken> tokens_;
  std::vector<std::size_t> indents_{0};
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1, open_ = 0;
  bool line_begins_ = true;

  Place place() const { return {.file = file_, .line = line_, .column = static_cast<int>(at_ - line_start_) + 1}; }
  void add(PythonToken::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), place()}); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void end_line() {
    ++at_;
    ++line_;
    line_start_ = at_;
  }

  /// Lines that are empty or comments alone have none.
  void indentation() {
    std::size_t end = at_;
    while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
    if (end >= text_.size() || text_[end] == '\n' || text_[end] == '\r' || text_[end] == '#') {
      at_ = end;
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      if (at_ < text_.size()) end_line();
      return;
    }
    const std::size_t width = end - at_;
    at_ = end;
    if (width > indents_.back()) {
      indents_.push_back(width);
      add(PythonToken::Kind::indent, "");
    }
    for (; width < indents_.back(); indents_.pop_back()) add(PythonToken::Kind::dedent, "");
    line_begins_ = false;
  }

  void next() {
    const char c = peek();
    if (line_begins_) return;
    if (c == '\n') {
      if (open_ == 0) {
        add(PythonToken::Kind::newline, "\n");
        line_begins_ = true;
      }
      return end_line();
    }
    if (c == '\\' && peek(1) == '\n') {
      ++at_;
      return end_line();
    }
    if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
      return;
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
      return;
    }
    if (c == '"' || c == '\'') return quoted();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))) != 0))
      return number();
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') return name();
    symbol();
  }

  void quoted() {
    const Place begin = place();
    const std::string one(1, peek()), three(3, peek());
    const std::string quote = text_.compare(at_, 3, three) == 0 ? three : one;
    at_ += quote.size();
    std::string inside;
    while (text_.compare(at_, quote.size(), quote) != 0) {
      if (at_ >= text_.size() || (peek() == '\n' && quote == one)) throw InputError(begin, "a text has no closing quote");
      if (peek() == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        inside += peek() == 'n' ? '\n' : peek();
        ++at_;
      } else if (peek() == '\n') {
        inside += '\n';
        end_line();
      } else {
        inside += text_[at_++];
      }
    }
    at_ += quote.size();
    tokens_.push_back({PythonToken::Kind::text, std::move(inside), begin});
  }

  void number() {
    const Place begin = place();
    std::string digits;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '.' || peek() == '_' ||
           ((peek() == '-' || peek() == '+') && (digits.back() == 'e' || digits.back() == 'E'))) {
      if (peek() != '_') digits += peek();
      ++at_;
    }
    tokens_.push_back({PythonToken::Kind::number, std::move(digits), begin});
  }

  void name() {
    const Place begin = place();
    std::string word;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_') word += text_[at_++];
    const bool prefix = word.size() <= 2 && (peek() == '"' || peek() == '\'');  // of a text: f"..", r".."
    if (prefix) return quoted();
    tokens_.push_back({PythonToken::Kind::name, std::move(word), begin});
  }

  void symbol() {
    constexpr std::array<std::string_view, 12> pairs{"->", "**", "//", "==", "!=", "<=", ">=", "+=", "-=", "*=", ":=", "<<"};
    const char c = peek();
    if (c == '(' || c == '[' || c == '{') ++open_;
    if ((c == ')' || c == ']' || c == '}') && open_ > 0) --open_;
    for (const std::string_view pair : pairs)
      if (text_.compare(at_, 2, pair) == 0) {
        add(PythonToken::Kind::symbol, std::string(pair));
        at_ += 2;
        return;
      }
    add(PythonToken::Kind::symbol, std::string(1, c));
    ++at_;
  }
};

}  // namespace

std::vector<PythonToken> python_tokens(const std::string& text, const std::string& file) { return PythonLexer(text, file).all(); }

}  // namespace tandem::scenarios
