#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "studies/place/placed_job.h"
#include "studies/place/step_traffic.h"
#include "topology/cluster.h"

namespace tandem::studies {

/// How long links between nodes are busy in a step, each by itself: bytes / capacity.
struct LinkTimes {
  Seconds slowest = 0;  ///< of them all
  Seconds spread = 0;   ///< root of the mean square over all, which falls with every byte that stays lower

  bool operator==(const LinkTimes&) const = default;
  auto operator<=>(const LinkTimes&) const = default;
};

struct TierLoad {
  Tier tier = Tier::nic;
  std::int64_t links = 0;  ///< directed
  double bytes = 0;        ///< over all of them
  Seconds slowest = 0;     ///< bytes / capacity of the worst
};

/// What the links between nodes (NICs, leaves' uplinks, spines' uplinks) carry in a step for a placement: the sum over
/// communicators of bytes of a channel times how often the communicator's layout crosses the link. Layouts are those that a
/// simulation would see. When blocks are moved only communicators with members in them are laid out again.
///
/// Links inside nodes carry the same wherever the nodes are, and are left out.
class LinkLoad {
 public:
  using Move = std::pair<std::uint32_t, std::uint32_t>;  ///< block, and the node where it goes

  /// The scenario and the traffic must outlive this.
  LinkLoad(const Scenario& scenario, const StepTraffic& traffic, const NodeOfBlock& nodes);

  /// Lays out everything anew.
  void place(const NodeOfBlock& nodes);
  /// Moves blocks; two of them may not end on one node. `take_back` undoes the last moves to the last bit.
  void move(std::span<const Move> moves);
  void take_back();

  const NodeOfBlock& nodes() const { return nodes_; }
  LinkTimes load() const;
  std::array<TierLoad, 3> by_tier() const;  ///< NICs, leaves, spines
  double bytes_over(LinkId link) const { return time_[link] * capacity_[link]; }
  const Cluster& cluster() const { return cluster_; }

 private:
  struct Share {
    LinkId link;
    Seconds time;
  };
  const Scenario* scenario_;
  const StepTraffic* traffic_;
  Cluster cluster_;
  NodeOfBlock nodes_;
  std::vector<BytesPerSecond> capacity_;  ///< by link; 0 inside nodes
  std::vector<Tier> tier_;
  LinkId first_ = 0;                                  ///< between nodes
  std::vector<std::vector<std::uint32_t>> touching_;  ///< by block: communicators
  std::vector<std::vector<Share>> shares_;            ///< by communicator
  std::vector<Seconds> time_;                         ///< by link

  std::vector<std::pair<LinkId, Seconds>> times_before_;  ///< for `take_back`, in the order of the changes
  std::vector<std::pair<std::uint32_t, std::vector<Share>>> shares_before_;
  std::vector<Move> nodes_before_;
  std::vector<char> is_affected_;  ///< by communicator, false between uses

  std::vector<Share> lay(std::uint32_t communicator) const;
};

}  // namespace tandem::studies
