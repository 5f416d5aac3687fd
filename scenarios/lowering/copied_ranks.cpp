#include "scenarios/lowering/copied_ranks.h"

#include <map>
#include <utility>

namespace tandem::scenarios {
namespace {

/// By the communicators of one rank, those of another in the same slots; nothing where these play other roles.
std::optional<std::vector<CommunicatorId>> communicators_in_place(const World& world, RankIndex of, RankIndex other) {
  const std::size_t count = world.communicators.size();
  std::vector<CommunicatorId> there(count, no_id), back(count, no_id);
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    const CommunicatorId here = world.communicator_of[of][slot], its = world.communicator_of[other][slot];
    if ((here == no_id) != (its == no_id)) return {};
    if (here == no_id) continue;
    if (there[here] != no_id && there[here] != its) return {};
    if (back[its] != no_id && back[its] != here) return {};
    there[here] = its;
    back[its] = here;
  }
  return there;
}

}  // namespace

std::vector<std::optional<CopiedRank>> copied_ranks(const Scenario& scenario, const World& world,
                                                    const std::vector<RankIndex>& ranks) {
  if (scenario.parallelism.zero >= 3 || scenario.overlaps_tp() || scenario.training.offload.activations > 0) return {};
  std::vector<std::optional<CopiedRank>> copied(ranks.size());
  std::map<std::uint32_t, std::size_t> first;  // by program
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const auto [known, is_first] = first.try_emplace(world.program[ranks[place]], place);
    if (is_first) continue;
    if (auto communicators = communicators_in_place(world, ranks[known->second], ranks[place]))
      copied[place] = CopiedRank{known->second, *std::move(communicators)};
  }
  return copied;
}

}  // namespace tandem::scenarios
