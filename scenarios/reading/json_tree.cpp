#include "scenarios/reading/json_tree.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/nearest.h"

namespace tandem::scenarios {
namespace {

constexpr std::size_t deepest_json = 32;
constexpr std::size_t most_json_values = 20'000;

/// Python's words for what JSON has no number for, as texts of the same length.
struct PythonWord {
  std::string_view word, text;
};
constexpr std::array python_words{PythonWord{"-Infinity", R"("-inf"   )"}, PythonWord{"Infinity", R"("inf"   )"},
                                  PythonWord{"NaN", R"("?")"}};

std::string without_python_words(std::string text) {
  bool inside = false;  // of a text
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (inside && text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      inside = !inside;
    if (inside) continue;
    for (const PythonWord& python : python_words) {
      if (text.compare(at, python.word.size(), python.word) != 0) continue;
      text.replace(at, python.word.size(), python.text);
      at += python.word.size() - 1;
      break;
    }
  }
  return text;
}

/// Passes characters on to the parser and keeps where it is.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// Builds the tree from the parser's events.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonBuilder(const std::string& text, std::string file)
      : begin_(text.data()), end_(text.data() + text.size()), reached_(begin_), at_(begin_), file_(std::move(file)) {
    root_.place.file = file_;
  }

  YamlNode parse() {
    nlohmann::json::sax_parse(CountingIterator(begin_, &reached_), CountingIterator(end_, &reached_), this);
    return std::move(root_);
  }

  bool null() override { return add(make_node(YamlNode::Kind::null, next_place())); }
  bool boolean(bool value) override { return add(make_scalar(value ? "true" : "false", next_place())); }
  bool number_integer(number_integer_t value) override { return add(make_scalar(std::to_string(value), next_place())); }
  bool number_unsigned(number_unsigned_t value) override { return add(make_scalar(std::to_string(value), next_place())); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return add(make_scalar(text, next_place())); }
  bool string(string_t& value) override {
    YamlNode node = make_scalar(value, next_place());
    node.quoted = true;
    return add(std::move(node));
  }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*elements*/) override { return open(YamlNode::Kind::mapping); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*elements*/) override { return open(YamlNode::Kind::sequence); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    const Place place = next_place();
    for (const YamlNode::Entry& other : open_.back().node.entries)
      if (other.key == value)
        throw InputError(place, "key " + excerpt(value) + " is given twice, first on line " + std::to_string(other.place.line));
    open_.back().key = value;
    open_.back().key_place = place;
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const nlohmann::json::exception& error) override {
    const std::string_view said = error.what();  // "[json.exception..] parse error at line 1, column 2: what is wrong"
    const std::size_t id = said.find("] "), column = said.find(", column "),
                      colon = said.find(": ", std::min(column, said.size()));
    const std::string_view sentence = column == std::string_view::npos ? said.substr(id + 2) : said.substr(colon + 2);
    throw InputError(next_place(), "wrong JSON: " + std::string(sentence));
  }

 private:
  struct Open {
    YamlNode node;
    std::string key = {};
    Place key_place = {};
  };

  const char *begin_, *end_;
  const char* reached_;  ///< by the parser
  const char* at_;       ///< up to where lines are counted
  std::string file_;
  int line_ = 1, column_ = 1;
  YamlNode root_;
  std::vector<Open> open_;
  std::size_t values_ = 0;

  /// Where the token begins that the parser has just read: behind what may stand between it and the one before.
  Place next_place() {
    while (at_ < end_ && std::string_view(" \t\r\n,:]}").find(*at_) != std::string_view::npos) step();
    Place place{.file = file_, .line = line_, .column = column_};
    while (at_ < reached_) step();
    return place;
  }

  void step() {
    const bool ends_line = *at_++ == '\n';
    line_ += ends_line ? 1 : 0;
    column_ = ends_line ? 1 : column_ + 1;
  }

  bool open(YamlNode::Kind kind) {
    const Place place = next_place();
    if (open_.size() == deepest_json)
      throw InputError(place, "values are nested deeper than " + std::to_string(deepest_json) + " levels");
    open_.push_back({.node = make_node(kind, place)});
    return true;
  }

  bool close() {
    YamlNode closed = std::move(open_.back().node);
    open_.pop_back();
    return add(std::move(closed));
  }

  bool add(YamlNode node) {
    if (++values_ > most_json_values)
      throw InputError(node.place,
                       "the file holds more than " + grouped(static_cast<std::int64_t>(most_json_values)) + " values");
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Open& parent = open_.back(); parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else {
      parent.node.entries.push_back({parent.key, parent.key, parent.key_place, std::move(node)});
    }
    return true;
  }
};

}  // namespace

YamlNode parse_json(const std::string& text, const std::string& file) {
  const std::string strict = without_python_words(text);
  return JsonBuilder(strict, file).parse();
}

}  // namespace tandem::scenarios
