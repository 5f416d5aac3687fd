#include "studies/chakra/chakra_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"

namespace tandem::studies {
namespace {

/// NAME and RANK of NAME.RANK.et; of a file of another name, that name and nothing.
std::pair<std::string, std::optional<std::uint32_t>> name_and_rank(const std::filesystem::path& path) {
  std::string name = path.filename();
  if (name.ends_with(".et")) name.resize(name.size() - std::string_view(".et").size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {name, std::nullopt};
  std::uint32_t rank = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, rank);
  if (error != std::errc() || rest != end) return {name, std::nullopt};
  return {name.substr(0, dot), rank};
}

/// The groups of a JSON object of lists of ranks; nothing of any other text.
std::optional<ChakraGroups> groups_in(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.empty()) return std::nullopt;
  ChakraGroups groups;
  for (const auto& [name, ranks] : json.items()) {
    const auto is_rank = [](const nlohmann::json& rank) { return rank.is_number_unsigned(); };
    if (!ranks.is_array() || ranks.empty() || !std::ranges::all_of(ranks, is_rank)) return std::nullopt;
    groups[name] = ranks.get<std::vector<std::uint32_t>>();
  }
  return groups;
}

class Reading {
 public:
  ChakraFiles take(const std::string& first_path) && {
    if (files_.ranks.empty())
      throw InputError({first_path, 0, 0}, "holds no trace; expected Chakra execution traces, NAME.RANK.et");
    return std::move(files_);
  }

  void add_folder(const std::string& folder) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (!entry.is_directory()) paths.push_back(entry.path());
    std::ranges::sort(paths);
    for (const std::string& path : paths) {
      if (path.ends_with(".et")) add_trace(path);
      if (path.ends_with(".json") && !add_groups(path)) files_.ignored.push_back(path);
    }
  }

  void add_file(const std::string& path) {
    if (!path.ends_with(".json") || !add_groups(path)) add_trace(path);
  }

 private:
  ChakraFiles files_;

  bool add_groups(const std::string& path) {
    const auto groups = groups_in(read_bytes(path));
    if (!groups) return false;
    for (const auto& [name, ranks] : *groups)
      if (!files_.groups.emplace(name, ranks).second)
        throw InputError({path, 0, 0}, "states process group '" + name + "' once more; expected one file of groups");
    return true;
  }

  void add_trace(const std::string& path) {
    ChakraTrace trace = read_chakra(path);
    const auto [name, told] = name_and_rank(path);
    if (!told) files_.assumed.push_back(path + " is of rank 0, which its name does not tell");
    if (!files_.ranks.empty() && name != files_.name)
      throw InputError({path, 0, 0}, "is of a run called '" + name + "', and " + files_.ranks.begin()->second.file +
                                         " of another; expected the traces NAME.RANK.et of one run");
    files_.name = name;
    const auto [entry, is_new] = files_.ranks.try_emplace(told.value_or(0), std::move(trace));
    if (!is_new)
      throw InputError({path, 0, 0}, "is of rank " + std::to_string(entry->first) + ", and so is " + entry->second.file +
                                         "; expected one trace of each rank");
  }
};

}  // namespace

ChakraFiles read_chakra_files(const std::vector<std::string>& paths) {
  Reading reading;
  for (const std::string& path : paths) std::filesystem::is_directory(path) ? reading.add_folder(path) : reading.add_file(path);
  return std::move(reading).take(paths.front());
}

}  // namespace tandem::studies
