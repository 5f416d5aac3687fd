#include "scenarios/interop/shell_words.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace tandem::scenarios {
namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Words {
 public:
  Words(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<ShellWord> all() {
    while (at_ < text_.size()) {
      skip_space();
      if (at_ < text_.size()) word();
    }
    return std::move(words_);
  }

 private:
  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t line_begin_ = 0;
  std::map<std::string, std::string> variables_;
  std::vector<ShellWord> words_;

  void newline() {
    ++line_;
    line_begin_ = at_ + 1;
  }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        continue;
      }
      const bool continued = c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
      if (continued) ++at_;
      if (continued || c == '\n') {
        newline();
      } else if (std::isspace(static_cast<unsigned char>(c)) == 0 && !ends_array(c)) {
        return;
      }
      ++at_;
    }
  }

  /// A bracket that is no part of a word: such a word is a list expression, with brackets that match.
  static bool ends_array(char c) { return c == ')' || c == ';'; }

  bool ends_word(char c, int depth) const {
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';') return true;
    return c == ')' && depth == 0;
  }

  /// The value of the variable that begins at the dollar sign, which is then behind us.
  std::optional<std::string> variable() {
    std::size_t from = at_ + 1;
    const bool braces = from < text_.size() && text_[from] == '{';
    if (braces) ++from;
    std::size_t to = from;
    while (to < text_.size() && is_name(text_[to])) ++to;
    if (to == from || (braces && (to >= text_.size() || text_[to] != '}'))) return {};
    const auto known = variables_.find(text_.substr(from, to - from));
    if (known == variables_.end()) return {};
    at_ = braces ? to + 1 : to;
    return known->second;
  }

  void word() {
    ShellWord word{.text = {}, .place = {.file = file_, .line = line_, .column = static_cast<int>(at_ - line_begin_) + 1}};
    char quote = 0;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '$' && quote != '\'') {
        if (const auto value = variable()) {
          word.text += *value;
          --at_;  // `variable` went beyond its end
          continue;
        }
      }
      if (quote != 0 && c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote == 0 && begins_array(c, word.text)) {
        ++at_;  // NAME=( is no word
        return;
      } else if (quote == 0 && (ends_word(c, depth) || (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n'))) {
        break;
      } else {
        if (c == '\n') newline();
        if (c == '(') ++depth;
        if (c == ')') --depth;
        word.text += c;
      }
    }
    if (!assignment(word.text)) words_.push_back(std::move(word));
  }

  static bool begins_array(char c, const std::string& so_far) {
    if (c != '(' || so_far.size() < 2 || so_far.back() != '=') return false;
    return std::all_of(so_far.begin(), so_far.end() - 1, [](char in_name) { return is_name(in_name) || in_name == '+'; });
  }

  bool assignment(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return false;
    for (std::size_t i = 0; i < equals; ++i)
      if (!is_name(word[i])) return false;
    variables_[word.substr(0, equals)] = word.substr(equals + 1);
    return true;
  }
};

}  // namespace

std::vector<ShellWord> shell_words(const std::string& text, const std::string& file) { return Words(text, file).all(); }

}  // namespace tandem::scenarios
