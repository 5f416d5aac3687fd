#include "studies/place/free_nodes.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "runtime/base/number_range.h"
#include "runtime/base/text_file.h"

namespace tandem::studies {
namespace {

constexpr std::int64_t most_nodes = 1'048'576;

/// Nodes that were named, and where.
class NodeList {
 public:
  explicit NodeList(std::int64_t nodes) : nodes_(nodes) {}

  void add(std::string_view item, const Place& place) {
    const NumberRange range = parse_range(item, place, "nodes and ranges of nodes, such as 0-3,8,12-15");
    if (range.last >= most_nodes) throw InputError(place, no_such({range.last}));
    for (std::int64_t node = range.first; node <= range.last; ++node) {
      if (node >= nodes_) {
        complain_of(missing_, missing_at_, node, place);
      } else if (!known_.insert(node).second) {
        complain_of(twice_, twice_at_, node, place);
      } else {
        found_.push_back(static_cast<std::uint32_t>(node));
      }
    }
  }

  std::vector<std::uint32_t> take(const Place& whole) && {
    if (!missing_.empty()) throw InputError(missing_at_, no_such(missing_));
    if (!twice_.empty())
      throw InputError(twice_at_, named(twice_) + " stand" + (twice_.size() == 1 ? "s" : "") +
                                      " here more than once, expected each node once");
    if (found_.empty()) throw InputError(whole, "names no nodes, expected some, such as 0-3,8,12-15");
    return std::move(found_);
  }

 private:
  std::int64_t nodes_;
  std::vector<std::uint32_t> found_;
  std::set<std::int64_t> known_;
  std::set<std::int64_t> missing_, twice_;
  Place missing_at_, twice_at_;

  static void complain_of(std::set<std::int64_t>& nodes, Place& at, std::int64_t node, const Place& place) {
    if (nodes.empty()) at = place;
    nodes.insert(node);
  }

  static std::string named(const std::set<std::int64_t>& nodes) {
    constexpr std::size_t most = 16;  // a sentence stays readable
    std::string text;
    std::size_t shown = 0;
    for (auto node = nodes.begin(); node != nodes.end() && shown < most; ++node, ++shown)
      text += (shown == 0 ? "" : ", ") + std::to_string(*node);
    if (nodes.size() > most) text += " and " + std::to_string(nodes.size() - most) + " more";
    return (nodes.size() == 1 ? "node " : "nodes ") + text;
  }

  std::string no_such(const std::set<std::int64_t>& nodes) const {
    return "the cluster has no " + named(nodes) + ", expected 0 to " + std::to_string(nodes_ - 1);
  }
};

void add_line(std::string_view line, const std::string& file, int number, NodeList& nodes) {
  constexpr std::string_view between = ", \t\r";
  for (std::size_t begin = line.find_first_not_of(between); begin != std::string_view::npos;
       begin = line.find_first_not_of(between, begin)) {
    const std::size_t end = std::min(line.find_first_of(between, begin), line.size());
    nodes.add(line.substr(begin, end - begin), {file, number, number == 0 ? 0 : static_cast<int>(begin) + 1});
    begin = end;
  }
}

}  // namespace

std::vector<std::uint32_t> read_free_nodes(const std::string& list_or_file, std::int64_t nodes) {
  NodeList found(nodes);
  if (list_or_file.find_first_not_of("0123456789,- ") == std::string::npos) {
    const Place option{"--nodes", 0, 0};
    add_line(list_or_file, option.file, 0, found);
    return std::move(found).take(option);
  }
  std::istringstream lines(read_text_file(list_or_file, "a list of nodes"));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string::npos && line[first] != '#') add_line(line, list_or_file, number, found);
  }
  return std::move(found).take({list_or_file, 0, 0});
}

}  // namespace tandem::studies
