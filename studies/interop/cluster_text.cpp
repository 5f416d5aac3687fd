#include "studies/interop/cluster_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "runtime/base/host_list.h"
#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/preset_specs.h"
#include "scenarios/reading/presets.h"

namespace tandem::studies {
namespace {

constexpr std::int64_t most_gpus_of_a_host = 16;  // DGX-2 has as many
constexpr std::size_t columns = 120;

bool is_plain(const std::string& name) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.'; };
  const bool is_word = name.size() < 6 && name.find_first_of("0123456789-_.") == std::string::npos;  // no, off, null
  return !name.empty() && !is_word && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
         std::ranges::all_of(name, plain);
}

/// Splits a host list at commas outside brackets.
std::vector<std::string> pieces_of(const std::string& list) {
  std::vector<std::string> pieces(1);
  bool open = false;
  for (const char c : list) {
    open = c == '[' || (open && c != ']');
    if (c == ',' && !open) {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

}  // namespace

ClusterBase cluster_base(const ImportRequest& request, ImportResult& result, std::string_view usual) {
  ClusterBase base{.name = request.cluster.empty() ? std::string(usual) : request.cluster, .spec = {}};
  if (is_preset_file(base.name)) base.name = std::filesystem::absolute(base.name).lexically_normal().string();
  base.spec = cluster_preset(base.name);
  if (request.cluster.empty())
    result.assumed.push_back("what the file does not say is as in " + base.name +
                             ": GPU, NVLink, latencies, efficiencies (--cluster)");
  return base;
}

bool spans_hosts(const ClusterBase& base) { return base.spec.gpus_per_node > most_gpus_of_a_host; }

std::int64_t gpus_of_host(const ClusterBase& base, std::int64_t hosts, std::int64_t known, const std::string& file,
                          const ImportRequest& request, ImportResult& result) {
  if (request.gpus != 0) {
    if (request.gpus % hosts != 0 || (known != 0 && request.gpus != known * hosts))
      throw InputError({"--gpus", 0, 0}, fmt::format("{} GPUs on the {} hosts of {}, expected {}", request.gpus, hosts, file,
                                                     known != 0 ? std::to_string(known * hosts) : "equally many on each"));
    return request.gpus / hosts;
  }
  if (known != 0) return known;
  if (spans_hosts(base))
    throw InputError(
        {"--cluster", 0, 0},
        fmt::format("{} has {} GPUs behind one NVLink domain, and {} does not say which hosts share one; expected a preset "
                    "whose node is a host, --gpus, or a topology of blocks",
                    base.name, base.spec.gpus_per_node, file));
  result.assumed.push_back(fmt::format("{} GPUs per host, as in {} (--gpus)", base.spec.gpus_per_node, base.name));
  return base.spec.gpus_per_node;
}

std::string cluster_head(const ClusterBase& base, const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  return fmt::format(
      "# A cluster as {} describes it, for `cluster: {{preset: ./THIS.yaml}}`. The rest is {}'s.\nas: {}\nname: {}\n",
      switch_text(name), base.name, switch_text(base.name), quoted_yaml(std::filesystem::path(file).stem().string()));
}

std::string hosts_text(std::span<const std::string> names) {
  std::string text = "hosts:\n", line;
  const auto end_line = [&] {
    if (!line.empty()) text += "  - " + quoted_yaml(line) + "\n";
    line.clear();
  };
  for (const std::string& piece : pieces_of(host_list_of(names))) {
    if (line.size() + piece.size() > columns) end_line();
    line += (line.empty() ? "" : ",") + piece;
  }
  end_line();
  return text;
}

std::string ranges_text(std::span<const std::int64_t> numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += (begin == 0 ? "" : ", ") + std::to_string(numbers[begin]);
    if (end > begin + 1) text += "-" + std::to_string(numbers[end - 1]);
    begin = end;
  }
  return text;
}

std::string switch_text(const std::string& name) { return is_plain(name) ? name : quoted_yaml(name); }

std::string read_large_text(const std::string& path, const std::string& expected) {
  constexpr std::size_t most = std::size_t{64} << 20;
  std::string text = read_bytes(path);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw InputError({.file = path}, "is empty, expected " + expected);
  if (text.size() > most) throw InputError({.file = path}, "is larger than 64 MB, expected " + expected);
  if (text.find('\0') != std::string::npos) throw InputError({.file = path}, "is no text, expected " + expected);
  return text;
}

}  // namespace tandem::studies
