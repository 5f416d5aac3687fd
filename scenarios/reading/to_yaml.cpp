#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <vector>

#include "scenarios/reading/document.h"

namespace tandem::scenarios {
namespace {

/// Whether a scalar written without quotes, between brackets, is read as this text and nothing else.
bool is_plain(const std::string& text) {
  constexpr auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const std::size_t first = text.find_first_not_of("+-.");
  if (first == std::string::npos || first > 1 || !is_letter(text[first])) return false;
  return std::ranges::all_of(text,
                             [&](char c) { return is_letter(c) || std::string_view("+-._/").find(c) != std::string_view::npos; });
}

std::string scalar(const YamlNode& node) { return node.quoted || !is_plain(node.text) ? quoted_yaml(node.text) : node.text; }

std::string sequence(const YamlNode& node) {
  std::string out;
  for (const YamlNode& item : node.items) out += (out.empty() ? "" : ", ") + to_yaml(item);
  return "[" + out + "]";
}

std::string mapping(const YamlNode& node) {
  std::vector<const YamlNode::Entry*> entries;
  for (const YamlNode::Entry& entry : node.entries) entries.push_back(&entry);
  std::ranges::sort(entries, {}, [](const YamlNode::Entry* entry) -> const std::string& { return entry->key; });
  std::string out;
  for (const YamlNode::Entry* entry : entries)
    out +=
        (out.empty() ? "" : ", ") + (is_plain(entry->key) ? entry->key : quoted_yaml(entry->key)) + ": " + to_yaml(entry->value);
  return "{" + out + "}";
}

}  // namespace

std::string quoted_yaml(const std::string& text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

std::string to_yaml(const YamlNode& document) {
  switch (document.kind) {
    case YamlNode::Kind::null:
      return "~";
    case YamlNode::Kind::scalar:
      return scalar(document);
    case YamlNode::Kind::sequence:
      return sequence(document);
    case YamlNode::Kind::mapping:
      return mapping(document);
  }
  throw std::logic_error("unknown kind of YAML node");
}

}  // namespace tandem::scenarios
