#include "studies/place/free_nodes.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "runtime/base/host_list.h"
#include "runtime/base/nearest.h"
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

  bool is_empty() const { return found_.empty() && missing_.empty() && twice_.empty(); }

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

/// Hosts that were named, by the node that they are part of.
class HostNames {
 public:
  HostNames(const ClusterHosts& hosts, NodeList& nodes) : hosts_(hosts), nodes_(nodes) {
    for (std::size_t i = 0; i < hosts.names.size(); ++i) numbers_.emplace(hosts.names[i], i);
  }

  bool any() const { return !hosts_.names.empty(); }
  bool known(std::string_view name) const { return numbers_.contains(name); }

  void add(std::string_view list, const Place& place) {
    for (const std::string& name : expand_host_list(list, place)) {
      const auto found = numbers_.find(name);
      if (found == numbers_.end()) throw InputError(place, unknown(name));
      const auto node = static_cast<std::int64_t>(found->second) / hosts_.per_node;
      std::set<std::string>& free = free_of_node_[node];
      if (!free.insert(name).second)
        throw InputError(place, "host " + excerpt(name) + " stands here more than once, expected each host once");
      if (std::ssize(free) == hosts_.per_node) nodes_.add(std::to_string(node), place);
    }
  }

  /// Returns the hosts whose nodes are not free as a whole.
  std::vector<std::string> parts_of_nodes() const {
    std::vector<std::string> parts;
    for (const auto& [node, free] : free_of_node_)
      if (std::ssize(free) < hosts_.per_node) parts.insert(parts.end(), free.begin(), free.end());
    std::ranges::sort(parts, comes_before);
    return parts;
  }

 private:
  const ClusterHosts& hosts_;
  NodeList& nodes_;
  std::map<std::string_view, std::size_t> numbers_;
  std::map<std::int64_t, std::set<std::string>> free_of_node_;

  std::string unknown(const std::string& name) const {
    if (hosts_.names.empty())
      return "the cluster names no hosts, so that " + excerpt(name) +
             " is none; expected numbers of nodes, or cluster.hosts with names";
    constexpr std::size_t most = 8;  // a sentence stays readable
    if (hosts_.names.size() <= most) return "the cluster has no host " + excerpt(name) + suggestion(name, hosts_.names);
    const std::string near = nearest(name, hosts_.names);
    return "the cluster has no host " + excerpt(name) +
           (near.empty() ? "; its first is " + excerpt(hosts_.names.front()) : "; did you mean " + excerpt(near) + "?");
  }
};

/// Calls `visit` with each item of a list, and its column: items lie between commas and spaces that are outside brackets.
template <typename Visit>
void for_each_item(std::string_view line, const Visit& visit) {
  std::size_t begin = 0;
  bool open = false;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    const char c = at < line.size() ? line[at] : ',';
    open = at < line.size() && (c == '[' || (open && c != ']'));
    if (open || (c != ',' && c != ' ' && c != '\t' && c != '\r')) continue;
    if (at > begin) visit(line.substr(begin, at - begin), static_cast<int>(begin) + 1);
    begin = at + 1;
  }
}

bool is_number_or_range(std::string_view item) { return item.find_first_not_of("0123456789-") == std::string_view::npos; }

void add_line(std::string_view line, const std::string& file, int number, NodeList& nodes, HostNames& hosts) {
  for_each_item(line, [&](std::string_view item, int column) {
    const Place place{file, number, number == 0 ? 0 : column};
    const bool is_name = hosts.any() || item.find('[') != std::string_view::npos;
    if (!is_name || (is_number_or_range(item) && !hosts.known(item))) {
      nodes.add(item, place);
    } else {
      hosts.add(item, place);
    }
  });
}

void add_file(const std::string& file, NodeList& nodes, HostNames& hosts) {
  std::istringstream lines(read_text_file(file, "a list of nodes"));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string::npos && line[first] != '#') add_line(line, file, number, nodes, hosts);
  }
}

/// Whether the text can be no file: a list of numbers, of hosts of the cluster, or with brackets.
bool is_list(const std::string& text, const HostNames& hosts) {
  std::error_code unreadable;
  if (text.find_first_not_of("0123456789,- ") == std::string::npos) return true;
  if (std::filesystem::exists(text, unreadable)) return false;
  bool names_hosts = text.find('[') != std::string::npos;
  for_each_item(text, [&](std::string_view item, int) { names_hosts = names_hosts || hosts.known(item); });
  return names_hosts;
}

}  // namespace

FreeNodes read_free_nodes(const std::string& list_or_file, std::int64_t nodes, const ClusterHosts& hosts) {
  NodeList found(nodes);
  HostNames names(hosts, found);
  Place whole{"--nodes", 0, 0};
  if (is_list(list_or_file, names)) {
    add_line(list_or_file, whole.file, 0, found, names);
  } else {
    whole.file = list_or_file;
    add_file(list_or_file, found, names);
  }
  FreeNodes free;
  const std::vector<std::string> parts = names.parts_of_nodes();
  const std::string of_domain = std::to_string(hosts.per_node) + " hosts that NVLink joins";
  if (!parts.empty())
    free.warnings.push_back(std::to_string(parts.size()) + " free hosts are passed over, as others of the " + of_domain +
                            " are not free: " + excerpt(host_list_of(parts)));
  if (!parts.empty() && found.is_empty())
    throw InputError(whole, "has no node free as a whole, expected all of some " + of_domain);
  free.nodes = std::move(found).take(whole);
  return free;
}

}  // namespace tandem::studies
