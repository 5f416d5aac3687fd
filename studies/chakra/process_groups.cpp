#include "studies/chakra/process_groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/base/input_error.h"

namespace tandem::studies {

ProcessGroups::ProcessGroups(const ChakraFiles& files, std::int64_t gpus) : of_files_(files.groups) {
  world_ = std::max(files.ranks.rbegin()->first + 1, static_cast<std::uint32_t>(gpus));
  is_told_ = gpus > 0 || files.ranks.size() > 1;
  for (const auto& [name, ranks] : of_files_) {
    world_ = std::max(world_, std::ranges::max(ranks) + 1);
    is_told_ = true;
  }
  for (const auto& [rank, trace] : files.ranks) read_metadata(rank, trace);
  if (gpus > 0 && world_ > gpus)
    throw InputError({files.ranks.begin()->second.file, 0, 0}, "is of a run on " + std::to_string(world_) +
                                                                   " ranks at least, and --gpus says " + std::to_string(gpus) +
                                                                   "; expected as many");
  all_.resize(world_);
  std::iota(all_.begin(), all_.end(), 0);
}

/// PyTorch records its groups as JSON within the values of a node: [{"pg_name": "0", "ranks": [], "group_size": 8}, ...], without
/// ranks where it is all of them.
void ProcessGroups::read_metadata(std::uint32_t rank, const ChakraTrace& trace) {
  for (const chakra::Node& node : trace.nodes) {
    const std::string& values = node.inputs().values();
    if (node.type() != static_cast<std::uint32_t>(ChakraNodeType::metadata) &&
        node.name().find("process_group:init") == std::string::npos)
      continue;
    const std::size_t begin = values.find("[{"), end = values.rfind("}]");
    if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
    const auto groups = nlohmann::json::parse(values.substr(begin, end + 2 - begin), nullptr, false);
    if (!groups.is_array()) continue;
    for (const auto& group : groups) {
      const auto name = group.find("pg_name"), ranks = group.find("ranks"), size = group.find("group_size");
      if (name == group.end() || !name->is_string()) continue;
      std::vector<std::uint32_t>& members = of_ranks_[rank][name->get<std::string>()];
      if (ranks != group.end() && ranks->is_array())
        for (const auto& member : *ranks)
          if (member.is_number_unsigned()) members.push_back(member.get<std::uint32_t>());
      if (!members.empty()) world_ = std::max(world_, std::ranges::max(members) + 1);
      if (members.empty() && size != group.end() && size->is_number_unsigned()) {
        world_ = std::max(world_, size->get<std::uint32_t>());
        is_told_ = true;
      }
    }
  }
}

const std::vector<std::uint32_t>& ProcessGroups::members(const ChakraTrace& trace, std::uint32_t rank, const chakra::Node& node,
                                                         const std::string& name) const {
  const auto refuse = [&](const std::string& sentence) {
    throw InputError({trace.file, 0, 0}, name_of_node(node) + " is of process group '" + name + "', " + sentence);
  };
  const std::vector<std::uint32_t>* found = nullptr;
  if (const auto own = of_ranks_.find(rank); own != of_ranks_.end())
    if (const auto group = own->second.find(name); group != own->second.end())
      found = group->second.empty() ? &all_ : &group->second;
  if (found == nullptr)
    if (const auto group = of_files_.find(name); group != of_files_.end()) found = &group->second;
  if (found == nullptr && (name.empty() || name == "0")) found = &all_;
  if (found == nullptr)
    refuse("which nothing states; expected a file of process groups beside the traces, such as {\"" + name + "\": [0, 1]}");
  if (std::ranges::max(*found) >= world_)
    refuse("which has rank " + std::to_string(std::ranges::max(*found)) + ", and the run has " + std::to_string(world_) +
           " ranks; expected --gpus to count all");
  if (std::ranges::find(*found, rank) == found->end())
    refuse("in which rank " + std::to_string(rank) + " is not; expected one of its own");
  return *found;
}

}  // namespace tandem::studies
