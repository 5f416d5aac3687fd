#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {
namespace {

constexpr std::size_t max_depth = 32;
constexpr std::size_t max_nodes = 20'000;

/// Builds the tree from the parser's events. yaml-cpp's own nodes are not used: they keep duplicate keys silently, and walking
/// them follows cyclic aliases for ever.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, Lines lines) : file_(std::move(file)), lines_(lines) { root_.place.file = file_; }

  Place place(const YAML::Mark& mark) const {
    if (lines_ == Lines::none) return {.file = file_};
    return {file_, mark.line + 1, mark.column + 1};  // yaml-cpp counts from 0
  }

  YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw InputError(place(mark), "found a second YAML document, expected one document per file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_leaf(make_node(YamlNode::Kind::null, place(mark)), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    check_tag(mark, tag);
    YamlNode node = make_scalar(value, place(mark));
    node.quoted = tag == "!";
    add_leaf(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    for (const Open& open : open_)
      if (open.anchor == anchor) throw InputError(place(mark), "this alias lies inside the value that it stands for");
    const Anchored& anchored = anchors_.at(anchor);
    count(place(mark), anchored.nodes);
    add(anchored.node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A sequence or mapping whose end has not come yet.
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    std::size_t nodes_before = 0;
    std::optional<YamlNode> key;
  };
  struct Anchored {
    YamlNode node;
    std::size_t nodes = 0;  ///< what each alias to it adds
  };

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw InputError(place(mark), "found the YAML tag " + excerpt(tag) + ", expected a plain value");
  }

  void count(const Place& where, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > max_nodes)
      throw InputError(where, "the file holds more than " + grouped(max_nodes) + " values once its aliases are expanded");
  }

  void add_leaf(YamlNode node, YAML::anchor_t anchor) {
    count(node.place, 1);
    if (anchor != 0) anchors_[anchor] = {node, 1};
    add(std::move(node));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    check_tag(mark, tag);
    if (open_.size() == max_depth)
      throw InputError(place(mark), "values are nested deeper than " + std::to_string(max_depth) + " levels");
    open_.push_back({.node = make_node(kind, place(mark)), .anchor = anchor, .nodes_before = nodes_, .key = {}});
    count(place(mark), 1);
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    if (closed.anchor != 0) anchors_[closed.anchor] = {closed.node, nodes_ - closed.nodes_before};
    add(std::move(closed.node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      add_key(parent, std::move(node));
    } else {
      // The parser places a value that is left out at whatever follows it.
      if (node.kind == YamlNode::Kind::null && node.place.line != parent.key->place.line) node.place = parent.key->place;
      parent.node.entries.push_back({parent.key->text, parent.key->text, parent.key->place, std::move(node)});
      parent.key.reset();
    }
  }

  static void add_key(Open& parent, YamlNode key) {
    if (key.kind != YamlNode::Kind::scalar) throw InputError(key.place, "found a key that is not plain text, expected a name");
    for (const YamlNode::Entry& other : parent.node.entries)
      if (other.key == key.text)
        throw InputError(key.place,
                         "key " + excerpt(key.text) + " is given twice, first on line " + std::to_string(other.place.line));
    parent.key = std::move(key);
  }

  std::string file_;
  Lines lines_;
  YamlNode root_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

}  // namespace

YamlNode parse_yaml(const std::string& text, const std::string& file, Lines lines) {
  check_text(text, file, a_scenario);
  TreeBuilder builder(file, lines);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) continue;
  } catch (const YAML::Exception& error) {
    throw InputError(builder.place(error.mark), "wrong YAML: " + error.msg);
  }
  return builder.take_root();
}

}  // namespace tandem::scenarios
