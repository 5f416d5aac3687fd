#include "scenarios/shell/arithmetic.h"

#include <array>
#include <charconv>
#include <limits>

#include "runtime/base/nearest.h"
#include "scenarios/shell/parse.h"
#include "scenarios/shell/unknown.h"

namespace tandem::scenarios::shell {
namespace {

constexpr int deepest_reference = 30;
constexpr int deepest_expression = 200;

struct IsUnknown {
  std::string text;
};

std::int64_t wrapped(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

class Expression {
 public:
  Expression(std::string_view text, const Place& place, const ArithmeticScope& scope, int depth)
      : text_(text), place_(place), scope_(scope), depth_(depth) {
    if (depth > deepest_reference) fail("refers to itself");
  }

  std::int64_t all() {
    skip_space();
    if (at_ == text_.size()) return 0;
    const std::int64_t value = comma();
    skip_space();
    if (at_ != text_.size()) fail("is no arithmetic");
    return value;
  }

 private:
  struct Target {
    std::string name, key;
  };
  std::string_view text_;
  const Place& place_;
  const ArithmeticScope& scope_;
  int depth_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  bool skipped_ = false;  ///< what a condition leaves out is read and not done

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(place_, "$((" + excerpt(text_) + ")) " + what + ", expected an expression of whole numbers");
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(std::string_view sign) {
    skip_space();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  std::int64_t comma() {
    std::int64_t value = assignment();
    while (take(",")) value = assignment();
    return value;
  }

  /// The operation before a single =, if that follows: "+" of "+=".
  bool take_assignment(std::string& operation) {
    skip_space();
    for (const std::string_view one : {"<<", ">>", "*", "/", "%", "+", "-", "&", "^", "|", ""}) {
      const std::string sign = std::string(one) + "=";
      if (!text_.substr(at_).starts_with(sign) || (one.empty() && peek(1) == '=')) continue;
      at_ += sign.size();
      operation = one;
      return true;
    }
    return false;
  }

  std::int64_t assignment() {
    if (++nesting_ > deepest_expression) fail("is nested too deeply");
    const std::size_t begin = at_;
    Target target;
    std::string operation;
    std::int64_t value = 0;
    if (take_target(target) && take_assignment(operation)) {
      const std::int64_t right = assignment();
      value = operation.empty() ? right : apply(operation, read(target), right);
      write(target, value);
    } else {
      at_ = begin;
      value = ternary();
    }
    --nesting_;
    return value;
  }

  bool take_target(Target& target) {
    skip_space();
    if (!begins_name(peek())) return false;
    while (begins_name(peek()) || is_digit(peek())) target.name += text_[at_++];
    if (peek() != '[') return true;
    ++at_;
    int depth = 0;
    while (at_ < text_.size() && (text_[at_] != ']' || depth > 0)) {
      if (text_[at_] == '[') ++depth;
      if (text_[at_] == ']') --depth;
      target.key += text_[at_++];
    }
    if (at_ == text_.size()) fail("has a bracket that nothing closes");
    ++at_;
    return true;
  }

  std::int64_t read(const Target& target) {
    if (skipped_) return 0;
    const std::string value = scope_.read(target.name, target.key);
    if (Unknowns::has(value)) throw IsUnknown{value};
    return Expression(value, place_, scope_, depth_ + 1).all();
  }
  void write(const Target& target, std::int64_t value) {
    if (!skipped_) scope_.write(target.name, target.key, value);
  }

  std::int64_t ternary() {
    const std::int64_t condition = binary(0);
    if (!take("?")) return condition;
    const std::int64_t yes = side(condition == 0, [this] { return assignment(); });
    if (!take(":")) fail("has ? without :");
    const std::int64_t no = side(condition != 0, [this] { return assignment(); });
    return condition != 0 ? yes : no;
  }

  template <typename Part>
  std::int64_t side(bool skips, Part part) {
    const bool outer = skipped_;
    skipped_ = skipped_ || skips;
    const std::int64_t value = part();
    skipped_ = outer;
    return value;
  }

  struct Level {
    std::array<std::string_view, 4> signs;
  };
  /// From those that bind least; longer signs first.
  static constexpr std::array<Level, 10> levels{{{{"||"}},
                                                 {{"&&"}},
                                                 {{"|"}},
                                                 {{"^"}},
                                                 {{"&"}},
                                                 {{"==", "!="}},
                                                 {{"<=", ">=", "<", ">"}},
                                                 {{"<<", ">>"}},
                                                 {{"+", "-"}},
                                                 {{"*", "/", "%"}}}};

  std::string_view take_operator(const Level& level) {
    skip_space();
    for (const std::string_view sign : level.signs) {
      if (sign.empty() || !text_.substr(at_).starts_with(sign)) continue;
      const char after = peek(sign.size());
      if (after == '=' && sign.size() == 1 && sign != "<" && sign != ">") continue;  // an assignment
      if (sign.size() == 1 && after == sign[0] && std::string_view("|&<>*").find(after) != std::string_view::npos) continue;
      if ((sign == "<<" || sign == ">>") && after == '=') continue;
      at_ += sign.size();
      return sign;
    }
    return {};
  }

  std::int64_t binary(std::size_t level) {
    if (level == levels.size()) return power();
    std::int64_t left = binary(level + 1);
    for (;;) {
      const std::string_view sign = take_operator(levels[level]);
      if (sign.empty()) return left;
      if (sign == "||" || sign == "&&") {
        const bool decided = (left != 0) == (sign == "||");
        const std::int64_t right = side(decided, [&] { return binary(level + 1); });
        left = decided ? (sign == "||" ? 1 : 0) : (right != 0 ? 1 : 0);
      } else {
        left = apply(sign, left, binary(level + 1));
      }
    }
  }

  std::int64_t apply(std::string_view sign, std::int64_t a, std::int64_t b) {
    if (sign == "|") return a | b;
    if (sign == "^") return a ^ b;
    if (sign == "&") return a & b;
    if (sign == "==") return a == b ? 1 : 0;
    if (sign == "!=") return a != b ? 1 : 0;
    if (sign == "<=") return a <= b ? 1 : 0;
    if (sign == ">=") return a >= b ? 1 : 0;
    if (sign == "<") return a < b ? 1 : 0;
    if (sign == ">") return a > b ? 1 : 0;
    if (sign == "<<") return wrapped(bits(a) << (bits(b) & 63));
    if (sign == ">>") return a >> (bits(b) & 63);
    if (sign == "+") return wrapped(bits(a) + bits(b));
    if (sign == "-") return wrapped(bits(a) - bits(b));
    if (sign == "*") return wrapped(bits(a) * bits(b));
    if (skipped_) return 0;
    if (b == 0) fail("divides by zero");
    if (b == -1) return sign == "/" ? wrapped(0 - bits(a)) : 0;
    return sign == "/" ? a / b : a % b;
  }

  std::int64_t power() {
    const std::int64_t base = unary();
    if (!take("**")) return base;
    std::int64_t exponent = power();
    if (exponent < 0) {
      if (skipped_) return 0;
      fail("has a negative exponent");
    }
    std::uint64_t result = 1, factor = bits(base);
    for (; exponent > 0; exponent >>= 1, factor *= factor)
      if ((exponent & 1) != 0) result *= factor;
    return wrapped(result);
  }

  std::int64_t unary() {
    if (++nesting_ > deepest_expression) fail("is nested too deeply");
    const std::int64_t value = signed_operand();
    --nesting_;
    return value;
  }

  std::int64_t signed_operand() {
    skip_space();
    for (const bool up : {true, false}) {
      const std::size_t begin = at_;
      Target target;
      if (take(up ? "++" : "--") && take_target(target)) {
        const std::int64_t value = wrapped(bits(read(target)) + bits(up ? 1 : -1));
        write(target, value);
        return value;
      }
      at_ = begin;
    }
    if (take("!")) return unary() == 0 ? 1 : 0;
    if (take("~")) return ~unary();
    if (take("-")) return wrapped(0 - bits(unary()));
    if (take("+")) return unary();
    return operand();
  }

  std::int64_t operand() {
    if (take("(")) {
      const std::int64_t value = comma();
      if (!take(")")) fail("has a bracket that nothing closes");
      return value;
    }
    if (is_digit(peek())) return number();
    Target target;
    if (!take_target(target)) fail("is no arithmetic");
    const std::int64_t value = read(target);
    if (take("++")) write(target, wrapped(bits(value) + 1));
    if (take("--")) write(target, wrapped(bits(value) - 1));
    return value;
  }

  /// 12, 0x1f, 017 and 2#101.
  std::int64_t number() {
    std::string digits;
    while (is_digit(peek()) || begins_name(peek()) || peek() == '#') digits += text_[at_++];
    int base = 10;
    std::size_t from = 0;
    if (const std::size_t hash = digits.find('#'); hash != std::string::npos) {
      std::from_chars(digits.data(), digits.data() + hash, base);
      if (base < 2 || base > 36) fail("has a base that is none from 2 to 36");
      from = hash + 1;
    } else if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      from = 2;
    } else if (digits.size() > 1 && digits[0] == '0') {
      base = 8;
      from = 1;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data() + from, digits.data() + digits.size(), value, base);
    if (end != digits.data() + digits.size() || from == digits.size() || error != std::errc{})
      fail("has `" + digits + "`, which is no whole number");
    return wrapped(value);
  }
};

}  // namespace

std::optional<std::int64_t> evaluate_arithmetic(std::string_view expression, const Place& place, const ArithmeticScope& scope,
                                                std::string& unknown) {
  if (Unknowns::has(expression)) {
    unknown = expression;
    return {};
  }
  try {
    return Expression(expression, place, scope, 0).all();
  } catch (const IsUnknown& found) {
    unknown = found.text;
    return {};
  }
}

}  // namespace tandem::scenarios::shell
