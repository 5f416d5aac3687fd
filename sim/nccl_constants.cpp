#include "sim/nccl_constants.h"

#include <bit>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>

#include "runtime/base/embedded_file.h"

namespace tandem::sim {

std::span<const EmbeddedFile> nccl_files();  // written by the build

namespace {

constexpr double us = 1e-6, GBps = 1e9;
constexpr Architecture generations[] = {Architecture::volta, Architecture::ampere, Architecture::hopper, Architecture::blackwell};
constexpr const char* columns[protocol_count] = {"ll", "ll128", "simple"};
constexpr const char* node_counts[] = {"1 node", "2 nodes", "more nodes"};

/// The values of the file, by the first three fields of their lines.
class Table {
 public:
  explicit Table(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      add(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  double number(const std::string& table, const std::string& row, const std::string& column) const {
    const auto found = numbers_.find(table + "," + row + "," + column);
    if (found == numbers_.end()) throw std::logic_error("nccl.csv has no " + table + "," + row + "," + column);
    return found->second;
  }
  /// The rows of a table, without repetition.
  std::set<std::string> rows(const std::string& table) const {
    std::set<std::string> found;
    for (const auto& [key, number] : numbers_)
      if (key.starts_with(table + ",")) found.insert(key.substr(table.size() + 1, key.rfind(',') - table.size() - 1));
    return found;
  }
  double number_or_zero(const std::string& table, const std::string& row, const std::string& column) const {
    return has(table, row, column) ? number(table, row, column) : 0;
  }
  bool has(const std::string& table, const std::string& row, const std::string& column) const {
    return numbers_.contains(table + "," + row + "," + column);
  }

 private:
  std::map<std::string, double> numbers_;

  void add(std::string_view line) {
    line = line.substr(0, line.find('#'));
    if (line.empty() || line.starts_with("table,")) return;
    const std::size_t comma = line.rfind(',');
    if (comma == std::string_view::npos) throw std::logic_error("nccl.csv has a line without a value: " + std::string(line));
    numbers_[std::string(line.substr(0, comma))] = std::stod(std::string(line.substr(comma + 1)));
  }
};

NcclConstants::ByNodes read_by_nodes(const Table& table, const std::string& name, const std::string& generation) {
  NcclConstants::ByNodes values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = table.number_or_zero(name, generation, node_counts[i]) * GBps;
  return values;
}

NcclConstants::Way read_way(const Table& table, const std::string& name) {
  NcclConstants::Way way;
  for (std::size_t p = 0; p < protocol_count; ++p) {
    way.base[p] = table.number("base_us", name, columns[p]) * us;
    way.nvlink[p] = table.number("nvlink_us", name, columns[p]) * us;
    way.net[p] = table.number("net_us", name, columns[p]) * us;
    way.one_node[p] = table.number_or_zero("share " + name, columns[p], "1 node");
    way.several[p] = table.number_or_zero("share " + name, columns[p], "several");
    for (const Architecture generation : generations)
      way.channel_limits[static_cast<std::size_t>(generation)][p] =
          read_by_nodes(table, name + "_" + columns[p] + "_channel_GBps", name_of(generation));
  }
  return way;
}

NcclConstants::Limits read_limits(const Table& table, const std::string& generation) {
  return {.ll = read_by_nodes(table, "ll_max_GBps", generation),
          .nvls_efficiency = table.number_or_zero("nvls_efficiency", generation, "published"),
          .achieved_nvls_efficiency = table.number_or_zero("nvls_efficiency", generation, "achieved"),
          .nvls_tree_rails = table.number_or_zero("nvls_tree_rails", generation, ""),
          .plateau = table.number("plateau", generation, "")};
}

NcclConstants::Measured read_measured(const Table& table, const std::string& generation) {
  NcclConstants::Measured measured;
  for (std::size_t p = 0; p < protocol_count; ++p) {
    const std::string row = generation + " " + columns[p];
    const auto number = [&](const char* column) { return table.number_or_zero("ring in a node", row, column); };
    measured.base[p] = number("base_us") * us;
    measured.hop[p] = number("hop_us") * us;
    measured.least_hop[p] = number("least_hop_us") * us;
    measured.share[p] = number("share");
    measured.gather_share[p] = number("gather_share");
    measured.channel_rate[p] = number("channel_GBps") * GBps;
    measured.fill[p] = number("fill");
  }
  return measured;
}

NcclConstants::Channels read_channels(const Table& table, const std::string& generation) {
  const auto number = [&](const char* way) {
    return static_cast<std::int32_t>(table.number_or_zero("channels", generation, way));
  };
  return {.in_node = number("in a node"),
          .per_rail = number("per rail"),
          .most_over_nodes = number("over nodes"),
          .nvls = number("nvls"),
          .nvls_over_nodes = number("nvls over nodes"),
          .direct_in_node = number("pair in a node"),
          .direct_over_nodes = number("pair over nodes")};
}

NcclConstants::TokenKernels read_token_kernels(const Table& table, const std::string& name) {
  return {.in_node = table.number(name, "nvlink", "1 node"),
          .forwarding = table.number(name, "nvlink", "several"),
          .over_nodes = table.number(name, "nic", "several"),
          .multiprocessors = static_cast<std::int32_t>(table.number(name, "multiprocessors", ""))};
}

std::vector<double> read_tree_correction(const Table& table, const char* protocol) {
  std::vector<double> factors;
  for (const std::string row = protocol; table.has("tree correction", row, std::to_string(factors.size()));)
    factors.push_back(table.number("tree correction", row, std::to_string(factors.size())));
  return factors;
}

NcclConstants read_constants() {
  const Table table(nccl_files().front().text);
  NcclConstants constants;
  for (const std::string& algorithm : table.rows("base_us")) constants.ways[algorithm] = read_way(table, algorithm);
  constants.pat_per_rank = table.number("pat", "per_rank_us", "") * us;
  constants.pat_hops_under_way = table.number("pat", "hops_under_way", "");
  for (const Architecture generation : generations) {
    constants.limits[static_cast<std::size_t>(generation)] = read_limits(table, name_of(generation));
    constants.ring_in_node[static_cast<std::size_t>(generation)] = read_measured(table, name_of(generation));
    constants.channels[static_cast<std::size_t>(generation)] = read_channels(table, name_of(generation));
  }
  for (std::size_t p = 0; p < protocol_count; ++p) {
    constants.data_per_wire_byte[p] = table.number("wire", columns[p], "");
    constants.bytes_per_channel[p] = static_cast<Bytes>(table.number("channel_bytes", columns[p], ""));
    constants.tree_corrections[p] = read_tree_correction(table, columns[p]);
  }
  constants.net_overhead = table.number("net_overhead_us", "", "") * us;
  constants.longest_fill = static_cast<Bytes>(table.number("ring in a node", "longest fill_bytes", ""));
  constants.deepep = read_token_kernels(table, "deepep");
  constants.hybridep = read_token_kernels(table, "hybridep");
  constants.nvls_piece = static_cast<Bytes>(table.number("nvls_chunk_bytes", "", ""));
  return constants;
}

}  // namespace

double NcclConstants::tree_correction(Protocol protocol, Bytes bytes) const {
  constexpr Bytes least = 64;
  const std::vector<double>& factors = tree_corrections[static_cast<std::size_t>(protocol)];
  const auto place = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes / least)));
  return place == 0 || place > factors.size() ? 1 : factors[place - 1];
}

const NcclConstants::Way& NcclConstants::way(std::string_view algorithm) const {
  const auto found = ways.find(algorithm);
  if (found == ways.end()) throw std::logic_error("nccl.csv has no rows for " + std::string(algorithm));
  return found->second;
}

const NcclConstants& nccl_constants() {
  static const NcclConstants constants = read_constants();
  return constants;
}

}  // namespace tandem::sim
