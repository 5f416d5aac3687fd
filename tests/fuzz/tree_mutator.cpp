#include "tests/fuzz/tree_mutator.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/input_error.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/json_tree.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::fuzz {
namespace {

using scenarios::YamlNode;
using Kind = YamlNode::Kind;

const std::string extremes[] = {"0",
                                "-1",
                                "1",
                                "2",
                                "3",
                                "0.5",
                                "1e308",
                                "-1e308",
                                "1e-308",
                                "1e999",
                                "0x10",
                                "2147483647",
                                "2147483648",
                                "4294967296",
                                "9223372036854775807",
                                "-9223372036854775808",
                                "9223372036854775808",
                                "99999999999999999999",
                                ".nan",
                                "NaN",
                                ".inf",
                                "true",
                                "false",
                                "null",
                                "",
                                "~",
                                "0-9999999",
                                "9-0",
                                "../x",
                                "a\\nb",
                                "${x}",
                                "\xe2\x82\xac"};

/// Changes nodes of a tree that it keeps a list of.
class TreeMutator {
 public:
  TreeMutator(YamlNode& root, Random& random, const std::vector<std::string>& words)
      : root_(root), random_(random), words_(words) {}

  void change() {
    nodes_.clear();
    collect(root_);
    YamlNode& node = any();
    switch (below(8)) {
      case 0:
        node = scalar();
        break;
      case 1:
        drop_one(node);
        break;
      case 2:
        repeat_one(node);
        break;
      case 3:
        if (const YamlNode copy = any(); nodes_.size() < most_nodes) node = copy;
        break;
      case 4:
        add_field(node);
        break;
      case 5: {
        YamlNode list = scenarios::make_node(Kind::sequence, node.place);
        list.items.push_back(node);
        node = std::move(list);
        break;
      }
      case 6:
        scale(node);
        break;
      default:
        rename_one(node);
    }
  }

 private:
  static constexpr std::size_t most_nodes = 2000;
  YamlNode& root_;
  Random& random_;
  const std::vector<std::string>& words_;
  std::vector<YamlNode*> nodes_;

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  YamlNode& any() { return *nodes_[below(nodes_.size())]; }

  void collect(YamlNode& node) {
    nodes_.push_back(&node);
    for (YamlNode& item : node.items) collect(item);
    for (YamlNode::Entry& entry : node.entries) collect(entry.value);
  }

  std::string text() {
    return words_.empty() || below(2) == 0 ? extremes[below(std::size(extremes))] : words_[below(words_.size())];
  }
  std::string key() { return words_.empty() ? "x" : words_[below(words_.size())]; }

  YamlNode scalar() {
    YamlNode node = scenarios::make_scalar(text(), {});
    node.quoted = below(8) == 0;
    return node;
  }

  void drop_one(YamlNode& node) {
    const auto drop = [&](auto& list) {
      if (!list.empty()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(below(list.size())));
    };
    drop(node.items);
    drop(node.entries);
  }

  void repeat_one(YamlNode& node) {
    if (!node.items.empty()) node.items.push_back(node.items[below(node.items.size())]);
    if (!node.entries.empty()) {
      YamlNode value = node.entries[below(node.entries.size())].value;
      put_field(node, key(), std::move(value));
    }
  }

  void rename_one(YamlNode& node) {
    if (node.entries.empty()) return;
    const std::size_t which = below(node.entries.size());
    YamlNode value = std::move(node.entries[which].value);
    node.entries.erase(node.entries.begin() + static_cast<std::ptrdiff_t>(which));
    put_field(node, key(), std::move(value));
  }

  void add_field(YamlNode& node) {
    if (node.kind == Kind::mapping) put_field(node, key(), scalar());
    if (node.kind == Kind::sequence) node.items.push_back(scalar());
  }

  static void put_field(YamlNode& mapping, const std::string& key, YamlNode value) {
    mapping.erase(key);
    mapping.entries.push_back({.key = key, .spelled = key, .place = {}, .value = std::move(value)});
  }

  void scale(YamlNode& node) {
    if (node.kind != Kind::scalar || node.text.empty()) return;
    char* end = nullptr;
    const long long value = std::strtoll(node.text.c_str(), &end, 10);
    constexpr long long limit = 1LL << 40;
    if (*end != '\0' || value > limit || value < -limit) return;
    const long long changed[] = {value + 1, value - 1, value * 2, value / 2, -value, value * 1000, value * 3};
    node.text = std::to_string(changed[below(std::size(changed))]);
  }
};

void write_json(const YamlNode& node, std::string& out) {
  const auto quoted = [](const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const auto list = [&](const auto& of, const auto& write) {
    const char* between = "";
    for (const auto& one : of) {
      out += between;
      between = ",";
      write(one);
    }
  };
  switch (node.kind) {
    case Kind::null:
      out += "null";
      break;
    case Kind::scalar:
      out += node.quoted || !nlohmann::json::accept(node.text) ? quoted(node.text) : node.text;
      break;
    case Kind::sequence:
      out += "[";
      list(node.items, [&](const YamlNode& item) { write_json(item, out); });
      out += "]";
      break;
    case Kind::mapping:
      out += "{";
      list(node.entries, [&](const YamlNode::Entry& entry) {
        out += quoted(entry.key) + ":";
        write_json(entry.value, out);
      });
      out += "}";
      break;
  }
}

template <typename Parse, typename Write>
std::string mutate_tree(const std::string& bytes, Random& random, const std::vector<std::string>& words, const Parse& parse,
                        const Write& write) {
  YamlNode root;
  try {
    root = parse(bytes);
  } catch (const InputError&) {
    return {};
  }
  TreeMutator mutator(root, random, words);
  for (std::size_t change = 1 + random() % 4; change > 0; --change) mutator.change();
  return write(root);
}

}  // namespace

std::string mutate_yaml(const std::string& bytes, Random& random, const std::vector<std::string>& words) {
  return mutate_tree(
      bytes, random, words, [](const std::string& text) { return scenarios::parse_yaml(text, "input"); },
      [](const YamlNode& root) { return scenarios::to_yaml(root); });
}

std::string mutate_json(const std::string& bytes, Random& random, const std::vector<std::string>& words) {
  return mutate_tree(
      bytes, random, words, [](const std::string& text) { return scenarios::parse_json(text, "input"); },
      [](const YamlNode& root) {
        std::string out;
        write_json(root, out);
        return out;
      });
}

}  // namespace tandem::fuzz
