#include "studies/recorded/survey.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <unordered_map>

#include "scenarios/mesh/colours.h"

namespace tandem::studies {
namespace {

Layout lay_recorded_group(const RecordedGroup& group, const Cluster& cluster) {
  switch (group.way) {
    case RecordedGroup::Way::pair:
      return lay_pair(cluster, group.members.front(), group.members.back());
    case RecordedGroup::Way::all_to_all:
      return lay_exchange(cluster, group.members);
    case RecordedGroup::Way::latency:
      return lay_latency(cluster, group.members);
    case RecordedGroup::Way::choice:
      return lay_group(cluster, group.members, {.tree = true, .nvls = true});
    case RecordedGroup::Way::ring:
      break;
  }
  return lay_group(cluster, group.members);
}

/// All that its exchanges' times depend on, but for the links.
std::uint64_t colour_of(const RecordedGroup& group, const Layout& layout, Colours& colours) {
  std::vector<std::uint64_t> parts{static_cast<std::uint64_t>(group.way), static_cast<std::uint64_t>(group.axis),
                                   group.members.size(), layout.nodes};
  for (const Seconds latency : {layout.intra_latency, layout.inter_latency})
    parts.push_back(std::bit_cast<std::uint64_t>(latency));
  for (const Paths& paths : layout.paths) {
    parts.push_back(std::uint64_t{paths.channels} << 8 | static_cast<std::uint64_t>(paths.algorithm));
    for (const BytesPerSecond rate : {paths.bandwidth, paths.in_node, paths.between_nodes, paths.slowest})
      parts.push_back(std::bit_cast<std::uint64_t>(rate));
  }
  return colours.of(parts);
}

/// Numbers the links that are crossed, and adds up how often.
class LinkNumbers {
 public:
  explicit LinkNumbers(RecordedSurvey& survey) : survey_(survey) {}

  void add(std::uint32_t group, std::uint32_t path, const Paths& paths) {
    std::map<std::uint32_t, std::uint32_t> times;
    for (const Crossing& crossing : paths.crossings) times[number_of(crossing.link)] += crossing.multiplicity;
    for (const auto& [link, count] : times) survey_.fold.crossings.push_back({group, link, count, count, path});
  }

 private:
  RecordedSurvey& survey_;
  std::unordered_map<LinkId, std::uint32_t> numbers_;

  std::uint32_t number_of(LinkId link) {
    const auto [entry, is_new] = numbers_.try_emplace(link, static_cast<std::uint32_t>(survey_.links.size()));
    if (is_new) survey_.links.push_back(link);
    return entry->second;
  }
};

}  // namespace

RecordedSurvey survey_groups(const RecordedRun& run, const Cluster& cluster, const std::vector<bool>& without_trees) {
  RecordedSurvey survey;
  FoldInput& fold = survey.fold;
  LinkNumbers links(survey);
  Colours colours;
  for (std::uint32_t id = 0; id < run.groups.size(); ++id) {
    const Layout& layout = survey.layouts.emplace_back(lay_recorded_group(run.groups[id], cluster));
    fold.communicator_colours.push_back(colour_of(run.groups[id], layout, colours));
    fold.members_per_rank.push_back(1);
    for (std::uint32_t path = 0; path < layout.paths.size(); ++path)
      if (!without_trees[id] || !is_of_trees(layout.paths[path].algorithm)) links.add(id, path, layout.paths[path]);
  }
  std::size_t slots = 0;
  for (const RecordedRank& rank : run.ranks) slots = std::max(slots, rank.groups.size());
  fold.slots.assign(slots, std::vector<std::uint32_t>(run.ranks.size(), FoldInput::absent));
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    fold.rank_colours.push_back(run.ranks[rank].program);
    for (std::size_t slot = 0; slot < run.ranks[rank].groups.size(); ++slot)
      fold.slots[slot][rank] = run.ranks[rank].groups[slot];
  }
  Colours link_colours;
  for (const LinkId id : survey.links) {
    const Link link = cluster.unnamed_link(id);
    fold.link_colours.push_back(
        link_colours.of(std::array{std::bit_cast<std::uint64_t>(link.capacity), static_cast<std::uint64_t>(link.tier)}));
  }
  return survey;
}

}  // namespace tandem::studies
