#include "scenarios/mesh/cable_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "scenarios/mesh/colours.h"

namespace tandem::scenarios {
namespace {

/// The fold's links, with what the shares need to know of each.
struct Cables {
  std::vector<bool> is_cable;
  std::vector<BytesPerSecond> capacity;
};

Cables cables_of(const CommunicatorSurvey& survey, const Cluster& cluster) {
  Cables cables;
  for (const LinkId id : survey.links) {
    const Link link = cluster.unnamed_link(id);
    cables.is_cable.push_back(link.tier == Tier::leaf || link.tier == Tier::spine);
    cables.capacity.push_back(link.capacity);
  }
  return cables;
}

}  // namespace

std::vector<std::vector<BytesPerSecond>> cable_shares(const CommunicatorSurvey& hashed, const Cluster& cluster,
                                                      CableMerge::Among among) {
  const Cables cables = cables_of(hashed, cluster);
  const auto kind = [&](std::uint32_t communicator) {
    return among == CableMerge::Among::all ? std::size_t{0} : static_cast<std::size_t>(hashed.instances[communicator].slot);
  };
  // A communicator runs one collective at a time, by one of its paths: the one that crosses the cable most often counts.
  std::unordered_map<std::uint64_t, std::uint32_t> most;  // by communicator and link
  for (const FoldInput::Crossing& c : hashed.fold.crossings) {
    if (!cables.is_cable[c.link]) continue;
    std::uint32_t& times = most[std::uint64_t{c.communicator} << 32 | c.link];
    times = std::max(times, c.of_communicator);
  }
  std::vector<std::vector<double>> crossed(slot_count, std::vector<double>(hashed.links.size(), 0));  // by kind and link
  for (const auto& [key, times] : most) crossed[kind(static_cast<std::uint32_t>(key >> 32))][key & 0xFFFFFFFF] += times;

  std::vector<std::vector<BytesPerSecond>> shares;
  for (const CommunicatorInstance& instance : hashed.instances)
    shares.emplace_back(instance.layout.paths.size(), std::numeric_limits<double>::infinity());
  for (const FoldInput::Crossing& c : hashed.fold.crossings) {
    if (!cables.is_cable[c.link]) continue;
    const double per_channel = cables.capacity[c.link] / crossed[kind(c.communicator)][c.link];
    BytesPerSecond& share = shares[c.communicator][c.path];
    share = std::min(share, per_channel * hashed.instances[c.communicator].layout.paths[c.path].channels);
  }
  return shares;
}

void merge_cables(const std::vector<std::vector<BytesPerSecond>>& shares, double tolerance, CommunicatorSurvey& even) {
  std::vector<double> best(slot_count, 0);  // by kind
  for (std::size_t i = 0; i < even.instances.size(); ++i) {
    even.instances[i].cable_shares = shares[i];
    double& of_kind = best[static_cast<std::size_t>(even.instances[i].slot)];
    for (const double share : shares[i]) of_kind = std::isinf(share) ? of_kind : std::max(of_kind, share);
  }
  Colours colours;
  for (std::size_t i = 0; i < even.instances.size(); ++i) {
    std::uint64_t& colour = even.fold.communicator_colours[i];
    std::vector<std::uint64_t> parts{colour};
    const double reference = best[static_cast<std::size_t>(even.instances[i].slot)];
    for (const double share : shares[i]) {
      const double steps = std::isinf(share) ? -1 : std::floor(std::log(reference / share) / std::log1p(tolerance) + 1e-9);
      parts.push_back(static_cast<std::uint64_t>(static_cast<std::int64_t>(steps)));
    }
    colour = colours.of(parts);
  }
}

}  // namespace tandem::scenarios
