#include <algorithm>
#include <cctype>
#include <charconv>

#include "runtime/base/host_list.h"
#include "runtime/base/nearest.h"
#include "studies/interop/slurm_topology.h"

namespace tandem::studies {
namespace {

/// KEY=VALUE with the place of the value.
struct ConfPair {
  std::string key, value;
  Place key_place, value_place;
};

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_conf_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Reads pairs from a text in which a line goes on behind a backslash, # begins a comment, and values may stand in quotes.
class ConfLines {
 public:
  ConfLines(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  /// Returns the pairs of the next line that has any; none at the end.
  std::vector<ConfPair> next() {
    std::vector<ConfPair> pairs;
    while (at_ < text_.size() && pairs.empty()) {
      while (at_ < text_.size() && text_[at_] != '\n') {
        if (goes_on()) continue;
        if (is_conf_space(text_[at_])) {
          ++at_;
        } else if (text_[at_] == '#') {
          at_ = std::min(text_.find('\n', at_), text_.size());
        } else {
          pairs.push_back(pair());
        }
      }
      new_line();
    }
    return pairs;
  }

 private:
  const std::string& text_;
  std::string file_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;

  Place here() const { return {file_, line_, static_cast<int>(at_ - line_begin_) + 1}; }

  void new_line() {
    if (at_ >= text_.size()) return;
    line_begin_ = ++at_;
    ++line_;
  }

  /// Passes over a backslash at the end of a line.
  bool goes_on() {
    if (text_[at_] != '\\') return false;
    const std::size_t end = text_.find_first_not_of(" \t\r", at_ + 1);
    if (end == std::string::npos || text_[end] != '\n') return false;
    at_ = end;
    new_line();
    return true;
  }

  ConfPair pair() {
    ConfPair pair;
    pair.key_place = here();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '=' && text_[at_] != '\n' && !is_conf_space(text_[at_])) ++at_;
    pair.key = text_.substr(begin, at_ - begin);
    while (at_ < text_.size() && is_conf_space(text_[at_])) ++at_;
    if (at_ >= text_.size() || text_[at_] != '=')
      throw InputError(pair.key_place,
                       excerpt(pair.key) + " stands there, expected KEY=VALUE such as SwitchName=s0 Nodes=tux[0-3]");
    ++at_;
    while (at_ < text_.size() && is_conf_space(text_[at_])) ++at_;
    pair.value_place = here();
    if (at_ < text_.size() && text_[at_] == '"') {
      const std::size_t end = text_.find('"', at_ + 1);
      if (end == std::string::npos || text_.find('\n', at_) < end)
        throw InputError(pair.value_place, "opens a quotation that the line does not close");
      pair.value = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return pair;
    }
    while (at_ < text_.size() && text_[at_] != '\n' && !is_conf_space(text_[at_]) && text_[at_] != '#') {
      if (text_[at_] == '\\' && goes_on()) {
        while (at_ < text_.size() && is_conf_space(text_[at_])) ++at_;
        continue;
      }
      pair.value += text_[at_++];
    }
    return pair;
  }
};

[[noreturn]] void refuse_key(const ConfPair& pair, const std::vector<std::string>& known) {
  throw InputError(pair.key_place, "topology.conf has no " + excerpt(pair.key) + " there" + suggestion(pair.key, known));
}

SlurmTopology::Switch switch_of(const std::vector<ConfPair>& pairs) {
  SlurmTopology::Switch one{.name = pairs.front().value, .place = pairs.front().key_place};
  for (const ConfPair& pair : std::vector(pairs.begin() + 1, pairs.end())) {
    const std::string key = in_lower_case(pair.key);
    if (key == "switches") {
      one.children = expand_host_list(pair.value, pair.value_place);
    } else if (key == "nodes") {
      one.nodes = slurm_nodes(pair.value, pair.value_place);
    } else if (key != "linkspeed") {  // in units of their own, and without effect in Slurm
      refuse_key(pair, {"Switches", "Nodes", "LinkSpeed"});
    }
  }
  return one;
}

SlurmTopology::Block block_of(const std::vector<ConfPair>& pairs) {
  SlurmTopology::Block block{.name = pairs.front().value, .place = pairs.front().key_place};
  for (const ConfPair& pair : std::vector(pairs.begin() + 1, pairs.end())) {
    if (in_lower_case(pair.key) != "nodes") refuse_key(pair, {"Nodes"});
    block.nodes = slurm_nodes(pair.value, pair.value_place);
  }
  if (block.nodes.empty())
    throw InputError(block.place, "block " + excerpt(block.name) + " has no nodes, expected Nodes=tux[0-3]");
  return block;
}

std::vector<std::int64_t> sizes_of(const ConfPair& pair) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin <= pair.value.size();) {
    const std::size_t end = std::min(pair.value.find(',', begin), pair.value.size());
    std::int64_t size = 0;
    const auto [stop, error] = std::from_chars(pair.value.data() + begin, pair.value.data() + end, size);
    if (error != std::errc{} || stop != pair.value.data() + end || size <= 0)
      throw InputError(pair.value_place, "BlockSizes is " + excerpt(pair.value) + ", expected numbers of nodes such as 4,16");
    sizes.push_back(size);
    begin = end + 1;
  }
  return sizes;
}

}  // namespace

bool is_slurm_conf(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = in_lower_case(text.substr(begin, end - begin));
    const std::size_t first = line.find_first_not_of(" \t\r");
    begin = end + 1;
    if (first == std::string::npos || line[first] == '#' || line.compare(first, 3, "---") == 0) continue;
    const std::size_t key_end = line.find_first_of("=: \t", first);
    if (key_end == std::string::npos) return false;
    const std::string key = line.substr(first, key_end - first);
    return key == "switchname" || key == "blockname" || key == "blocksizes" || line[key_end] == '=';
  }
  return false;
}

SlurmTopology parse_slurm_conf(const std::string& text, const std::string& file) {
  SlurmTopology topology;
  ConfLines lines(text, file);
  for (std::vector<ConfPair> pairs = lines.next(); !pairs.empty(); pairs = lines.next()) {
    const ConfPair& first = pairs.front();
    const std::string key = in_lower_case(first.key);
    if (first.value.empty()) throw InputError(first.key_place, excerpt(first.key) + " has no value, expected a name");
    if (key == "switchname") {
      topology.switches.push_back(switch_of(pairs));
      const bool has_speed =
          std::ranges::any_of(pairs, [](const ConfPair& pair) { return in_lower_case(pair.key) == "linkspeed"; });
      if (has_speed && topology.unused.empty()) topology.unused.emplace_back("LinkSpeed, whose unit Slurm leaves open");
    } else if (key == "blockname") {
      topology.blocks.push_back(block_of(pairs));
    } else if (key == "blocksizes") {
      topology.block_sizes = sizes_of(first);
      topology.sizes_place = first.value_place;
    } else {
      refuse_key(first, {"SwitchName", "BlockName", "BlockSizes"});
    }
  }
  return topology;
}

}  // namespace tandem::studies
