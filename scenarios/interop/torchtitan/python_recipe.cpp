#include "scenarios/interop/torchtitan/python_recipe.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "runtime/base/nearest.h"
#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/torchtitan/python_tokens.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

constexpr int deepest_python_call = 16, deepest_python_value = 64;
constexpr std::size_t most_python_steps = 100'000;

using Variables = std::map<std::string, YamlNode>;

/// Functions of the file: where their parameters and bodies begin among the tokens.
struct PythonFunction {
  std::string name;
  std::size_t parameters = 0;  ///< the token behind the opening bracket
  bool returns = false;
};

class PythonReader {
 public:
  PythonReader(const std::string& text, const std::string& file) : tokens_(python_tokens(text, file)), file_(file) { collect(); }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const PythonFunction& function : functions_)
      if (function.returns) names.push_back(function.name);
    return names;
  }

  YamlNode call(const std::string& name, const YamlNode* arguments) {
    const auto found = std::ranges::find(functions_, name, &PythonFunction::name);
    if (found == functions_.end())
      throw InputError({.file = file_}, "has no function " + excerpt(name) + suggestion(name, names()));
    if (++depth_ > deepest_python_call) throw InputError({.file = file_}, "the functions call each other too deep");
    const std::size_t back = at_;
    Variables outer = std::move(variables_);
    variables_.clear();
    at_ = found->parameters;
    parameters(arguments);
    YamlNode result = body();
    variables_ = std::move(outer);
    at_ = back;
    --depth_;
    return result;
  }

 private:
  std::vector<PythonToken> tokens_;
  std::string file_;
  std::vector<PythonFunction> functions_;
  std::size_t at_ = 0, steps_ = 0;
  int depth_ = 0, nesting_ = 0;
  Variables variables_;

  const PythonToken& token() {
    if (++steps_ > most_python_steps) throw InputError({.file = file_}, "is too long to follow");
    return tokens_[std::min(at_, tokens_.size() - 1)];
  }
  bool is(std::string_view text) { return token().text == text && token().kind != PythonToken::Kind::text; }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void fail(const std::string& expected) {
    throw InputError(token().place, "expected " + expected + ", found " + excerpt(token().text));
  }
  void expect(std::string_view text) {
    if (!take(text)) fail("`" + std::string(text) + "`");
  }

  void collect() {
    int level = 0;
    for (std::size_t i = 0; i + 2 < tokens_.size(); ++i) {
      using enum PythonToken::Kind;
      if (tokens_[i].kind == indent) ++level;
      if (tokens_[i].kind == dedent) --level;
      if (level == 0 && tokens_[i].kind == name && tokens_[i].text == "def")
        functions_.push_back({.name = tokens_[i + 1].text, .parameters = i + 3});
      if (level > 0 && tokens_[i].kind == name && tokens_[i].text == "return" && !functions_.empty())
        functions_.back().returns = true;
    }
  }

  /// Names, types and defaults, up to the colon that begins the body.
  void parameters(const YamlNode* arguments) {
    for (int position = 0; !take(")");) {
      take("*");
      if (take(",")) continue;
      const std::string name = token().text;
      ++at_;
      if (take(":")) skip_until({",", "=", ")"});
      YamlNode value = unknown(token().place, name);
      if (take("=")) value = expression();
      const YamlNode* given = arguments == nullptr ? nullptr : arguments->find(name);
      if (given == nullptr && arguments != nullptr) given = arguments->find(std::to_string(position));
      variables_[name] = given == nullptr ? value : *given;
      ++position;
      take(",");
    }
    if (take("->")) skip_until({":"});
    expect(":");
  }

  /// Passes over balanced tokens.
  void skip_until(std::initializer_list<std::string_view> ends) {
    for (int open = 0; token().kind != PythonToken::Kind::end; ++at_) {
      if (open == 0 && token().kind != PythonToken::Kind::text && std::ranges::find(ends, token().text) != ends.end()) return;
      if (is("(") || is("[") || is("{")) ++open;
      if (is(")") || is("]") || is("}")) --open;
    }
  }

  void skip_line() {
    while (token().kind != PythonToken::Kind::newline && token().kind != PythonToken::Kind::end) ++at_;
    if (token().kind == PythonToken::Kind::newline) ++at_;
  }
  void skip_block() {
    int level = 0;
    do {
      if (token().kind == PythonToken::Kind::indent) ++level;
      if (token().kind == PythonToken::Kind::dedent) --level;
      ++at_;
    } while (level > 0 && token().kind != PythonToken::Kind::end);
  }

  YamlNode body() {
    if (token().kind == PythonToken::Kind::newline) ++at_;
    if (token().kind == PythonToken::Kind::indent) ++at_;
    while (token().kind != PythonToken::Kind::dedent && token().kind != PythonToken::Kind::end) {
      if (take("return")) return expression();
      statement();
    }
    return unknown(token().place, "None");
  }

  void statement() {
    using enum PythonToken::Kind;
    for (const char* idle : {"from", "import", "assert", "pass", "raise", "del", "global"})
      if (is(idle)) return skip_line();
    for (const char* block : {"def", "class", "with"})
      if (is(block)) {
        skip_line();
        if (token().kind == indent) skip_block();
        return;
      }
    for (const char* choice : {"if", "for", "while", "try"})
      if (is(choice)) fail("statements one after the other: what a recipe does by `" + std::string(choice) + "` is not followed");
    if (token().kind != name) return skip_line();  // a text alone
    std::vector<std::string> path{token().text};
    const std::size_t begin = at_;
    ++at_;
    while (take(".")) {
      path.push_back(token().text);
      ++at_;
    }
    if (is(":")) {
      ++at_;
      skip_until({"=", "\n"});
    }
    if (!take("=")) {
      at_ = begin;
      skip_line();
      return;
    }
    YamlNode value = expression();
    assign(path, std::move(value));
    skip_line();
  }

  void assign(const std::vector<std::string>& path, YamlNode value) {
    YamlNode* to = &variables_[path.front()];
    for (std::size_t i = 1; i < path.size(); ++i) {
      if (to->kind != YamlNode::Kind::mapping) *to = make_node(YamlNode::Kind::mapping, value.place);
      to = &section_of(*to, path[i], value.place);
    }
    *to = std::move(value);
  }

  static YamlNode unknown(const Place& place, const std::string& words) {
    YamlNode node = make_scalar(words, place);
    node.quoted = true;
    return node;
  }

  /// Nested brackets are values in values.
  YamlNode expression() {
    if (++nesting_ > deepest_python_value) fail("values nested less deep");
    YamlNode value = choice();
    --nesting_;
    return value;
  }

  YamlNode choice() {
    YamlNode value = conjunction();
    if (!take("if")) return value;  // VALUE if CONDITION else OTHER
    const YamlNode condition = conjunction();
    expect("else");
    YamlNode other = expression();
    return truth_of(condition) == Truth::no ? other : value;
  }

  YamlNode conjunction() {
    YamlNode value = comparison();
    while (is("and") || is("or")) {
      const bool both = is("and");
      ++at_;
      const YamlNode other = comparison();
      const bool left = truth_of(value) != Truth::no, right = truth_of(other) != Truth::no;
      value = make_scalar((both ? left && right : left || right) ? "true" : "false", value.place);
    }
    return value;
  }

  YamlNode comparison() {
    const bool negated = take("not");
    YamlNode value = sum();
    if (take("in")) {
      const YamlNode list = sum();
      const bool holds = std::ranges::find(list.items, value.text, &YamlNode::text) != list.items.end();
      value = make_scalar(holds ? "true" : "false", value.place);
    }
    for (const char* operation : {"==", "!=", "<", ">", "<=", ">=", "is"})
      if (take(operation)) {
        take("not");
        const YamlNode other = sum();
        value = make_scalar(
            (value.text == other.text) == (std::string_view(operation) == "==" || std::string_view(operation) == "is") ? "true"
                                                                                                                       : "false",
            value.place);
      }
    if (negated) value = make_scalar(truth_of(value) == Truth::no ? "true" : "false", value.place);
    return value;
  }

  static std::optional<double> as_number(const YamlNode& node) {
    double number = 0;
    if (node.kind != YamlNode::Kind::scalar || node.quoted) return {};
    const char* const last = node.text.data() + node.text.size();
    const auto [end, error] = std::from_chars(node.text.data(), last, number);
    if (error != std::errc{} || end != last) return {};
    return number;
  }

  YamlNode combined(const YamlNode& left, const std::string& operation, const YamlNode& right) {
    const auto a = as_number(left), b = as_number(right);
    if (!a || !b) return unknown(left.place, left.text + " " + operation + " " + right.text);
    double result = 0;
    if (operation == "*")
      result = *a * *b;
    else if (operation == "+")
      result = *a + *b;
    else if (operation == "-")
      result = *a - *b;
    else if (operation == "**")
      result = std::pow(*a, *b);
    else if (*b == 0)
      return unknown(left.place, left.text);
    else if (operation == "//")
      result = std::floor(*a / *b);
    else if (operation == "%")
      result = *a - std::floor(*a / *b) * *b;
    else
      result = *a / *b;
    return make_scalar(fmt::format("{}", result), left.place);
  }

  YamlNode sum() {
    YamlNode value = product();
    while (is("+") || is("-")) {
      const std::string operation = token().text;
      ++at_;
      value = combined(value, operation, product());
    }
    return value;
  }

  YamlNode product() {
    YamlNode value = signed_value();
    while (is("*") || is("/") || is("//") || is("%") || is("**")) {
      const std::string operation = token().text;
      ++at_;
      value = combined(value, operation, signed_value());
    }
    return value;
  }

  YamlNode signed_value() {
    const bool negative = take("-");
    YamlNode value = postfix();
    return negative ? combined(make_scalar("0", value.place), "-", value) : value;
  }

  YamlNode postfix() {
    std::string called = token().kind == PythonToken::Kind::name ? token().text : std::string();
    const Place place = token().place;
    YamlNode value = atom();
    while (true) {
      if (take(".")) {
        const std::string field = token().text;
        ++at_;
        called += called.empty() ? "" : "." + field;
        const YamlNode* inside = value.kind == YamlNode::Kind::mapping ? value.find(field) : nullptr;
        value = inside != nullptr ? *inside : unknown(place, called.empty() ? field : called);
      } else if (take("(")) {
        value = called_with(called, place);
        called.clear();
      } else if (take("[")) {
        skip_until({"]"});
        expect("]");
        value = unknown(place, called + "[..]");
      } else {
        return value;
      }
    }
  }

  YamlNode called_with(const std::string& called, const Place& place) {
    YamlNode call_node = make_node(YamlNode::Kind::mapping, place);
    put(call_node, "_type", called, place);
    for (int position = 0; !take(")");) {
      if (token().kind == PythonToken::Kind::end) fail("`)`");
      take("**");
      take("*");
      const bool keyword = token().kind == PythonToken::Kind::name && tokens_[std::min(at_ + 1, tokens_.size() - 1)].text == "=";
      const std::string key = keyword ? token().text : std::to_string(position++);
      if (keyword) at_ += 2;
      put(call_node, key, expression());
      if (is("for")) skip_until({")"});
      take(",");
    }
    const bool ours = std::ranges::find(functions_, called, &PythonFunction::name) != functions_.end();
    return ours ? call(called, &call_node) : call_node;
  }

  YamlNode atom() {
    using enum PythonToken::Kind;
    const PythonToken here = token();
    if (here.kind == text) {
      std::string joined_text;
      for (; token().kind == text; ++at_) joined_text += token().text;
      return unknown(here.place, joined_text);
    }
    if (here.kind == number) {
      ++at_;
      return make_scalar(here.text, here.place);
    }
    if (take("(")) return list(")", here.place);
    if (take("[")) return list("]", here.place);
    if (take("{")) return dictionary(here.place);
    if (take("lambda")) {
      skip_until({",", ")", "]", "\n"});
      return unknown(here.place, "lambda");
    }
    if (here.kind != name) fail("a value");
    ++at_;
    if (here.text == "True" || here.text == "False") return make_scalar(here.text == "True" ? "true" : "false", here.place);
    if (here.text == "None") return make_node(YamlNode::Kind::null, here.place);
    const auto found = variables_.find(here.text);
    return found == variables_.end() ? unknown(here.place, here.text) : found->second;
  }

  /// A bracket with one value and no comma is that value.
  YamlNode list(std::string_view end, const Place& place) {
    YamlNode items = make_node(YamlNode::Kind::sequence, place);
    bool comma = false;
    while (!take(end)) {
      if (token().kind == PythonToken::Kind::end) fail("`" + std::string(end) + "`");
      take("*");
      items.items.push_back(expression());
      if (is("for")) skip_until({end});
      if (take(",")) comma = true;
    }
    if (end == ")" && !comma && items.items.size() == 1) return items.items.front();
    return items;
  }

  YamlNode dictionary(const Place& place) {
    YamlNode mapping = make_node(YamlNode::Kind::mapping, place);
    while (!take("}")) {
      if (token().kind == PythonToken::Kind::end) fail("`}`");
      take("**");
      const YamlNode key = expression();
      if (take(":")) put(mapping, key.text, expression());
      take(",");
    }
    return mapping;
  }
};

}  // namespace

std::vector<std::string> python_functions(const std::string& text, const std::string& file) {
  return PythonReader(text, file).names();
}

YamlNode evaluate_python_function(const std::string& text, const std::string& file, const std::string& function) {
  return PythonReader(text, file).call(function, nullptr);
}

}  // namespace tandem::scenarios
