#include "sim/link_use.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/collective_cost.h"
#include "sim/fluid_network.h"

namespace tandem::sim {
namespace {

/// Sums bytes by bins of time.
class Bins {
 public:
  Bins(Seconds makespan, std::size_t count) : width_(makespan / static_cast<double>(count)), count_(count) {}

  Seconds width() const { return width_; }

  void spread(double bytes, Seconds begin, Seconds end, std::vector<double>& into) const {
    const std::size_t first = bin_of(begin), last = bin_of(end);
    if (first == last) {
      into[first] += bytes;
      return;
    }
    const double rate = bytes / (end - begin);
    into[first] += rate * (static_cast<double>(first + 1) * width_ - begin);
    for (std::size_t bin = first + 1; bin < last; ++bin) into[bin] += rate * width_;
    into[last] += rate * (end - static_cast<double>(last) * width_);
  }

 private:
  Seconds width_;
  std::size_t count_;

  std::size_t bin_of(Seconds date) const {
    return width_ > 0 ? std::min(static_cast<std::size_t>(date / width_), count_ - 1) : 0;
  }
};

/// Moves what a bin holds above `most` to the nearest that hold less, as far as there are any.
void level(std::vector<double>& bins, double most) {
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    for (std::size_t distance = 1; bins[bin] > most && distance < bins.size(); ++distance) {
      for (const std::size_t other : {bin - distance, bin + distance}) {  // below 0 is beyond the end
        if (other >= bins.size() || bins[other] >= most) continue;
        const double moved = std::min(bins[bin] - most, most - bins[other]);
        bins[bin] -= moved;
        bins[other] += moved;
      }
    }
  }
}

/// What all collectives of one communicator send by one of its paths.
struct PathUse {
  double bytes = 0;  ///< of a channel, as sent
  std::vector<double> by_bin;
};
using PathUses = std::map<std::pair<CommunicatorId, std::uint32_t>, PathUse>;

PathUses path_uses(const Dag& dag, const Timeline& timeline, const Bins& bins, std::size_t count) {
  PathUses uses;
  CollectiveCosts costs(dag);
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const TaskId first = dag.members_of(g).front();
    const CollectiveCost& cost = costs.of(dag.tasks[first]);
    const CommunicatorId communicator = dag.groups[g].communicator;
    if (!FluidNetwork::is_flow(cost, dag.communicators[communicator].layout)) continue;
    PathUse& use = uses[{communicator, cost.paths}];
    use.by_bin.resize(count);
    const auto bytes = static_cast<double>(cost.bytes_per_channel);
    const Seconds latency = timeline.duration(first) > cost.latency ? cost.latency : 0;
    const auto [first_time, last_time] = timeline.times_of(first);
    for (std::int64_t time = first_time; time <= last_time; ++time)
      bins.spread(bytes, timeline.start_of(first, time) + latency, timeline.end_of(first, time), use.by_bin);
    use.bytes += timeline.times(first) * bytes / cost.stretch;
  }
  return uses;
}

/// Families of communicators that cross links, each with its bytes on every link.
using Families = std::map<std::pair<std::string, Axis>, std::vector<double>>;

void add_users(const Families& families, std::vector<LinkUse::OfLink>& links) {
  for (const auto& [family, bytes] : families) {
    for (LinkId id = 0; id < links.size(); ++id) {
      if (bytes[id] > 0) links[id].users.push_back({family.first, family.second, bytes[id]});
    }
  }
  for (LinkUse::OfLink& link : links) std::ranges::stable_sort(link.users, std::greater<>(), &LinkUse::User::bytes);
}

std::vector<LinkUse::OfTier> by_tier(const std::vector<Link>& links, const std::vector<LinkUse::OfLink>& uses, std::size_t bins) {
  std::array<LinkUse::OfTier, tier_count> tiers;
  for (LinkId id = 0; id < links.size(); ++id) {
    LinkUse::OfTier& tier = tiers[static_cast<std::size_t>(links[id].tier)];
    tier.tier = links[id].tier;
    tier.capacity = tier.links == 0 ? links[id].capacity : std::min(tier.capacity, links[id].capacity);
    tier.links += links[id].count;
    tier.utilisation.resize(bins);
    for (std::size_t bin = 0; bin < bins; ++bin)
      tier.utilisation[bin] += uses[id].utilisation[bin] * static_cast<double>(links[id].count);
  }
  std::vector<LinkUse::OfTier> used;
  for (LinkUse::OfTier& tier : tiers) {
    for (double& utilisation : tier.utilisation) utilisation /= static_cast<double>(tier.links);
    if (tier.links > 0) used.push_back(std::move(tier));
  }
  return used;
}

}  // namespace

LinkUse link_use(const Dag& dag, const Timeline& timeline, std::size_t count) {
  if (count == 0) throw std::logic_error("link use in no bins");
  const Bins bins(timeline.makespan(), count);
  LinkUse use;
  for (std::size_t edge = 0; edge <= count; ++edge) use.edges.push_back(static_cast<double>(edge) * bins.width());
  use.edges.back() = timeline.makespan();

  use.links.assign(dag.links.size(), {.bytes = 0, .utilisation = std::vector<double>(count, 0), .users = {}});
  Families families;
  for (const auto& [path, of_path] : path_uses(dag, timeline, bins, count)) {
    const Communicator& communicator = dag.communicators[path.first];
    std::vector<double>& of_family = families[{communicator.name, communicator.axis}];
    of_family.resize(dag.links.size());
    for (const Crossing& crossing : communicator.layout.paths[path.second].crossings) {
      LinkUse::OfLink& link = use.links[crossing.link];
      for (std::size_t bin = 0; bin < count; ++bin) link.utilisation[bin] += of_path.by_bin[bin] * crossing.multiplicity;
      link.bytes += of_path.bytes * crossing.multiplicity;
      of_family[crossing.link] += of_path.bytes * crossing.multiplicity;
    }
  }
  for (LinkId id = 0; id < use.links.size(); ++id) {
    const double most = dag.links[id].capacity * bins.width();
    std::vector<double>& by_bin = use.links[id].utilisation;
    if (!(most > 0)) continue;
    level(by_bin, most);
    for (double& utilisation : by_bin) utilisation /= most;
  }
  add_users(families, use.links);
  use.tiers = by_tier(dag.links, use.links, count);
  return use;
}

}  // namespace tandem::sim
