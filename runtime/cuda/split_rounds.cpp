#include "runtime/cuda/split_rounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tandem {
namespace {

struct OpenRound {
  std::size_t index = 0;  ///< among all rounds
  std::set<std::uint32_t> ranks;
};

}  // namespace

std::vector<SplitRound> split_rounds(const Dag& dag) {
  std::vector<SplitRound> rounds;
  std::map<std::tuple<std::string, Axis, std::size_t>, std::vector<OpenRound>> alike;
  for (CommunicatorId id = 0; id < dag.communicators.size(); ++id) {
    const Communicator& communicator = dag.communicators[id];
    std::vector<OpenRound>& open = alike[{communicator.name, communicator.axis, communicator.members.size()}];
    auto round = std::ranges::find_if(open, [&](const OpenRound& candidate) {
      return std::ranges::none_of(communicator.members, [&](std::uint32_t rank) { return candidate.ranks.contains(rank); });
    });
    if (round == open.end()) {
      round = open.insert(open.end(), {.index = rounds.size(), .ranks = {}});
      rounds.emplace_back();
    }
    round->ranks.insert(communicator.members.begin(), communicator.members.end());
    rounds[round->index].communicators.push_back(id);
  }
  return rounds;
}

SplitPlace place_in(const Dag& dag, const SplitRound& round, std::uint32_t world_rank) {
  for (std::size_t colour = 0; colour < round.communicators.size(); ++colour) {
    const std::vector<std::uint32_t>& members = dag.communicators[round.communicators[colour]].members;
    const auto place = std::ranges::find(members, world_rank);
    if (place == members.end()) continue;
    return {.communicator = round.communicators[colour],
            .colour = static_cast<int>(colour),
            .key = static_cast<int>(place - members.begin())};
  }
  return {};
}

}  // namespace tandem
