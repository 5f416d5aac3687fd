#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "scenarios/interop/foreign_tree.h"

namespace tandem::scenarios {
namespace {

constexpr std::size_t most_toml_values = 20'000;

class TomlTree {
 public:
  explicit TomlTree(const std::string& file) : file_(file) {}

  YamlNode node_of(const toml::node& node) {
    const Place place = place_at(node.source());
    if (++values_ > most_toml_values) throw InputError(place, "the file holds too many values");
    if (const toml::table* table = node.as_table()) {
      YamlNode mapping = make_node(YamlNode::Kind::mapping, place);
      for (const auto& [key, value] : *table) {
        const std::string name(key.str());
        mapping.entries.push_back({name, name, place_at(key.source()), node_of(value)});
      }
      // toml++ sorts by name; the file's order is that of the places.
      std::ranges::stable_sort(mapping.entries, [](const YamlNode::Entry& a, const YamlNode::Entry& b) {
        return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
      });
      return mapping;
    }
    if (const toml::array* array = node.as_array()) {
      YamlNode list = make_node(YamlNode::Kind::sequence, place);
      for (const toml::node& item : *array) list.items.push_back(node_of(item));
      return list;
    }
    return scalar(node, place);
  }

  Place place_at(const toml::source_region& region) const {
    return {.file = file_, .line = static_cast<int>(region.begin.line), .column = static_cast<int>(region.begin.column)};
  }

 private:
  std::string file_;
  std::size_t values_ = 0;

  static YamlNode scalar(const toml::node& node, const Place& place) {
    if (const auto text = node.value_exact<std::string>()) {
      YamlNode scalar = make_scalar(*text, place);
      scalar.quoted = true;
      return scalar;
    }
    if (const auto truth = node.value_exact<bool>()) return make_scalar(*truth ? "true" : "false", place);
    if (const auto whole = node.value_exact<std::int64_t>()) return make_scalar(std::to_string(*whole), place);
    std::ostringstream written;
    node.visit([&](const auto& value) {
      if constexpr (toml::is_value<decltype(value)>) written << value.get();
    });
    return make_scalar(written.str(), place);
  }
};

}  // namespace

YamlNode parse_toml(const std::string& text, const std::string& file) {
  TomlTree tree(file);
  try {
    return tree.node_of(toml::parse(text, file));
  } catch (const toml::parse_error& error) {
    throw InputError(tree.place_at(error.source()), "not TOML: " + std::string(error.description()));
  }
}

}  // namespace tandem::scenarios
