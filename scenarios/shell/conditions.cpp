#include <algorithm>
#include <charconv>
#include <regex>

#include "runtime/base/nearest.h"
#include "scenarios/shell/interpreter.h"
#include "scenarios/shell/parse.h"
#include "scenarios/shell/patterns.h"

namespace tandem::scenarios::shell {
namespace {

constexpr std::string_view unary_signs = "abcdefghknoprstuvwxzGLNORS";
bool is_unary(const std::string& sign) {
  return sign.size() == 2 && sign[0] == '-' && unary_signs.find(sign[1]) != std::string_view::npos;
}
bool is_binary(const std::string& sign) {
  constexpr std::string_view signs[] = {"=",   "==",  "!=",  "=~",  "<",   ">",   "-eq", "-ne",
                                        "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"};
  return std::ranges::find(signs, sign) != std::end(signs);
}
Truth conjunction(Truth a, Truth b) {
  if (a == Truth::no || b == Truth::no) return Truth::no;
  return a == Truth::open || b == Truth::open ? Truth::open : Truth::yes;
}
Truth disjunction(Truth a, Truth b) { return opposite(conjunction(opposite(a), opposite(b))); }

}  // namespace

/// or = and {-o and}; and = not {-a not}; not = ! not | primary; primary = ( or ) | unary text | text binary text | text.
class TestReader {
 public:
  /// `patterns`: of [[ ]], whose right sides are, and where && and || join.
  TestReader(Interpreter& shell, const std::vector<std::string>& words, bool patterns, const Place& place)
      : shell_(shell), words_(words), patterns_(patterns), place_(place) {}

  Truth all() {
    if (words_.empty()) return Truth::no;
    const Truth result = either();
    if (at_ != words_.size()) fail();
    return result;
  }

 private:
  Interpreter& shell_;
  const std::vector<std::string>& words_;
  bool patterns_;
  const Place& place_;
  std::size_t at_ = 0;
  int depth_ = 0;

  [[noreturn]] void fail() const {
    std::string text;
    for (const std::string& word : words_) text += (text.empty() ? "" : " ") + shell_.out_.unknowns.readable(word);
    throw InputError(place_, "the condition " + excerpt(text) + " is not one that is read here, expected one such as $A = b");
  }
  bool sees(std::string_view word) const { return at_ < words_.size() && words_[at_] == word; }
  bool take(std::string_view word) {
    if (!sees(word)) return false;
    ++at_;
    return true;
  }

  Truth either() {
    if (++depth_ > 50) fail();
    Truth result = both();
    while (take(patterns_ ? "||" : "-o")) result = disjunction(result, both());
    --depth_;
    return result;
  }
  Truth both() {
    Truth result = negated();
    while (take(patterns_ ? "&&" : "-a")) result = conjunction(result, negated());
    return result;
  }
  Truth negated() {
    if (sees("!") && at_ + 1 < words_.size()) {
      ++at_;
      if (++depth_ > 50) fail();
      return opposite(negated());
    }
    return primary();
  }
  Truth primary() {
    if (at_ >= words_.size()) fail();
    const std::size_t left = words_.size() - at_;
    if (left >= 3 && is_binary(words_[at_ + 1])) {
      const std::size_t at = at_;
      at_ += 3;
      return shell_.binary_test(words_[at], words_[at + 1], words_[at + 2], patterns_, place_);
    }
    if (sees("(") && left > 1) {
      ++at_;
      const Truth result = either();
      if (!take(")")) fail();
      return result;
    }
    if (is_unary(words_[at_]) && left >= 2) {
      at_ += 2;
      return shell_.unary_test(words_[at_ - 2], words_[at_ - 1]);
    }
    return opposite(shell_.is_empty(words_[at_++]));
  }
};

Truth Interpreter::is_open(const std::string& text) {
  open_reason_ += text;
  return Truth::open;
}

Truth Interpreter::is_empty(const std::string& text) {
  bool known = true;
  const bool empty = out_.unknowns.is_empty(text, known);
  if (!known) return is_open(text);
  if (empty && !text.empty())
    for (const Unknown* unknown : out_.unknowns.all_of(text))
      assume(unknown->what + " is empty, as nothing sets it (--env " + unknown->setting + "=VALUE)");
  return truth(empty);
}

Truth Interpreter::unary_test(const std::string& sign, const std::string& text) {
  if (sign == "-z") return is_empty(text);
  if (sign == "-n") return opposite(is_empty(text));
  if (sign == "-v" && !Unknowns::has(text)) return truth(variables().find(text.substr(0, text.find('['))) != nullptr);
  return is_open(text);  // of files
}

Truth Interpreter::binary_test(const std::string& left, const std::string& sign, const std::string& right, bool patterns,
                               const Place& place) {
  if (sign.starts_with('-')) {
    if (sign == "-nt" || sign == "-ot" || sign == "-ef") return is_open(left + right);
    std::string unknown;
    const auto value = [&](const std::string& text) -> std::int64_t {
      if (Unknowns::has(text)) {
        unknown += text;
        return 0;
      }
      if (patterns) return arithmetic(text, place, unknown).value_or(0);
      std::int64_t number = 0;
      const std::size_t from = text.find_first_not_of(" \t\n"),
                        sign_length = text.substr(from == std::string::npos ? 0 : from).starts_with('+') ? 1 : 0;
      const char* const begin = text.data() + (from == std::string::npos ? 0 : from + sign_length);
      const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
      const std::string rest(end, text.data() + text.size());
      if (error != std::errc{} || rest.find_first_not_of(" \t\n") != std::string::npos)
        throw InputError(place, "the condition compares " + excerpt(text) + " as a number, expected a whole one");
      return number;
    };
    const std::int64_t a = value(left), b = value(right);
    if (!unknown.empty()) return is_open(unknown);
    if (sign == "-eq") return truth(a == b);
    if (sign == "-ne") return truth(a != b);
    if (sign == "-lt") return truth(a < b);
    if (sign == "-le") return truth(a <= b);
    return truth(sign == "-gt" ? a > b : a >= b);
  }
  if (sign == "=" || sign == "==" || sign == "!=") {
    if (right.empty()) return sign == "!=" ? opposite(is_empty(left)) : is_empty(left);
    if (left.empty()) return sign == "!=" ? opposite(is_empty(right)) : is_empty(right);
  }
  if (Unknowns::has(left) || Unknowns::has(right)) return is_open(left + right);
  if (sign == "=" || sign == "==") return truth(patterns ? matches_pattern(left, right) : left == right);
  if (sign == "!=") return truth(patterns ? !matches_pattern(left, right) : left != right);
  if (sign == "<") return truth(left < right);
  if (sign == ">") return truth(left > right);
  if (left.size() > 256 || right.size() > 256) return is_open(left);
  try {
    return truth(std::regex_search(left, std::regex(right, std::regex::extended)));
  } catch (const std::regex_error&) {
    throw InputError(place, excerpt(right) + " is no regular expression, expected an extended one");
  }
}

Truth Interpreter::test(const std::vector<Word>& words, const Place& place) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string before = i == 0 ? "" : words[i - 1].plain();
    const bool is_pattern = before == "=" || before == "==" || before == "!=";
    texts.push_back(is_pattern ? expand_pattern(words[i]) : expand_text(words[i]));
  }
  return TestReader(*this, texts, true, place).all();
}

Truth Interpreter::test_words(const std::vector<Text>& words, const Place& place) {
  std::vector<std::string> texts;
  for (const Text& word : words) texts.push_back(word.text);
  if (texts.size() == 1) return opposite(is_empty(texts[0]));
  try {
    return TestReader(*this, texts, false, place).all();
  } catch (const InputError&) {
    if (std::ranges::any_of(texts, [](const std::string& text) { return Unknowns::has(text); })) {
      std::string all;
      for (const std::string& text : texts) all += text;
      return is_open(all);
    }
    return Truth::no;  // as bash, which complains and goes on
  }
}

}  // namespace tandem::scenarios::shell
