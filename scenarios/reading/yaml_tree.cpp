#include "scenarios/reading/yaml_tree.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tandem::scenarios {

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto entry = std::ranges::find(entries, key, &Entry::key);
  return entry == entries.end() ? nullptr : &entry->value;
}

YamlNode* YamlNode::find(std::string_view key) { return const_cast<YamlNode*>(std::as_const(*this).find(key)); }

void YamlNode::erase(std::string_view key) {
  std::erase_if(entries, [key](const Entry& entry) { return entry.key == key; });
}

YamlNode make_node(YamlNode::Kind kind, const Place& place) {
  YamlNode node;
  node.kind = kind;
  node.place = place;
  return node;
}

YamlNode make_scalar(std::string text, const Place& place) {
  YamlNode node = make_node(YamlNode::Kind::scalar, place);
  node.text = std::move(text);
  return node;
}

namespace {

const YamlNode* step(const YamlNode& node, std::string_view key) {
  if (node.kind != YamlNode::Kind::sequence) return node.find(key);
  std::size_t index = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), index);
  return parsed.ec == std::errc{} && index < node.items.size() ? &node.items[index] : nullptr;
}

/// Follows `path` as far as it exists; `complete` tells whether that was all of it.
const YamlNode& follow(const YamlNode& root, std::string_view path, bool& complete) {
  const YamlNode* node = &root;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const YamlNode* next = step(*node, path.substr(0, dot));
    if (next == nullptr) {
      complete = false;
      return *node;
    }
    node = next;
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  complete = true;
  return *node;
}

}  // namespace

const YamlNode* find_path(const YamlNode& root, std::string_view path) {
  bool complete = false;
  const YamlNode& node = follow(root, path, complete);
  return complete ? &node : nullptr;
}

const Place& place_of(const YamlNode& root, std::string_view path) {
  bool complete = false;
  return follow(root, path, complete).place;
}

}  // namespace tandem::scenarios
