#include "scenarios/interop/nemo/interpolation.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace tandem::scenarios {
namespace {

constexpr int deepest_reference = 16;

class Interpolation {
 public:
  explicit Interpolation(YamlNode& root) : root_(root) {}

  void resolve_all() { walk(root_, ""); }

 private:
  YamlNode& root_;

  void walk(YamlNode& node, const std::string& path) {
    if (node.kind == YamlNode::Kind::scalar && node.text.find("${") != std::string::npos) {
      if (const auto value = resolved(node.text, path, 0)) {
        node.text = value->text;
        node.kind = value->kind;
        node.quoted = value->quoted;
      }
    }
    for (YamlNode::Entry& entry : node.entries) walk(entry.value, path.empty() ? entry.key : path + "." + entry.key);
    for (std::size_t i = 0; i < node.items.size(); ++i) walk(node.items[i], path + "." + std::to_string(i));
  }

  /// The value of a text that may hold references, seen from `path`; nothing where one leads nowhere.
  std::optional<YamlNode> resolved(const std::string& text, const std::string& path, int depth) {
    if (depth > deepest_reference) return {};
    const std::size_t begin = text.find("${");
    if (begin == std::string::npos) return make_scalar(text, {});
    const std::size_t end = closing_brace(text, begin);
    if (end == std::string::npos) return {};
    std::optional<YamlNode> value = reference(text.substr(begin + 2, end - begin - 2), path, depth);
    if (!value) return {};
    if (begin == 0 && end + 1 == text.size()) return value;
    if (value->kind != YamlNode::Kind::scalar) return {};
    return resolved(text.substr(0, begin) + value->text + text.substr(end + 1), path, depth + 1);
  }

  static std::size_t closing_brace(const std::string& text, std::size_t begin) {
    int open = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      if (text[at] == '{') ++open;
      if (text[at] == '}' && --open == 0) return at;
    }
    return std::string::npos;
  }

  std::optional<YamlNode> reference(const std::string& inside, const std::string& path, int depth) {
    const std::size_t colon = inside.find(':');
    if (colon != std::string::npos && inside.find("${") > colon) return arithmetic(inside, colon, path, depth);
    const auto named = resolved(inside, path, depth + 1);
    if (!named || named->kind != YamlNode::Kind::scalar) return {};
    const std::string target = absolute(named->text, path);
    const YamlNode* node = find_path(root_, target);
    if (node == nullptr && target.starts_with("training.")) node = find_path(root_, target.substr(target.find('.') + 1));
    if (node == nullptr) return {};
    if (node->kind != YamlNode::Kind::scalar) return node->kind == YamlNode::Kind::null ? std::optional(*node) : std::nullopt;
    auto value = resolved(node->text, target, depth + 1);
    if (value && value->text == node->text) value->quoted = node->quoted;
    return value;
  }

  /// A dot at the front is the mapping that holds the value, each further one the mapping above.
  static std::string absolute(const std::string& name, std::string path) {
    if (!name.starts_with('.')) return name;
    std::size_t dots = 0;
    for (; dots < name.size() && name[dots] == '.'; ++dots) {
      const std::size_t last = path.rfind('.');
      path = last == std::string::npos ? "" : path.substr(0, last);
    }
    return path.empty() ? name.substr(dots) : path + "." + name.substr(dots);
  }

  std::optional<YamlNode> arithmetic(const std::string& inside, std::size_t colon, const std::string& path, int depth) {
    const std::string operation = inside.substr(0, colon);
    std::vector<double> operands;
    std::size_t at = colon + 1;
    while (at <= inside.size()) {
      std::size_t comma = at;
      for (int open = 0; comma < inside.size() && (inside[comma] != ',' || open > 0); ++comma)
        open += inside[comma] == '{' ? 1 : inside[comma] == '}' ? -1 : 0;
      std::string operand = inside.substr(at, comma - at);
      std::erase(operand, ' ');
      const auto value = resolved(operand, path, depth + 1);
      double number = 0;
      if (!value || value->kind != YamlNode::Kind::scalar) return {};
      const char* const last = value->text.data() + value->text.size();
      if (const auto [end, error] = std::from_chars(value->text.data(), last, number); error != std::errc{} || end != last)
        return {};
      operands.push_back(number);
      at = comma + 1;
    }
    double result = operands.front();
    for (std::size_t i = 1; i < operands.size(); ++i) {
      if (operation == "multiply")
        result *= operands[i];
      else if (operation == "divide" && operands[i] != 0)
        result = std::floor(result / operands[i]);
      else if (operation == "sum" || operation == "add")
        result += operands[i];
      else if (operation == "subtract")
        result -= operands[i];
      else
        return {};
    }
    return make_scalar(fmt::format("{}", result), {});
  }
};

}  // namespace

void resolve_interpolations(YamlNode& root) { Interpolation(root).resolve_all(); }

}  // namespace tandem::scenarios
