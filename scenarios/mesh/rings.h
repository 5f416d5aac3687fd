#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster.h"

namespace tandem::scenarios {

/// What the links that a communicator crosses hang on (see topology/layouts.h).
enum class MemberOrder : std::uint8_t {
  none,       ///< all exchange with all
  of_nodes,   ///< a ring
  of_members  ///< places in trees
};

/// Where the communicators of one kind send along their rings, by rank, as far as links can tell.
///
/// In one node a ring crosses the port of every member equally often, in whichever order it goes. Over several with as many
/// members each, a channel goes from a member to that of the same place in the next node, and every member has one. Where nodes
/// hold unequal numbers of them, a ring goes from each to the next.
class Rings {
 public:
  /// For so many ranks, none of which is in a ring yet: each is a group of its own.
  Rings(const Cluster& cluster, std::uint32_t ranks, MemberOrder order);

  bool has(std::uint32_t rank) const { return has_[rank]; }
  /// Members ascend. Ranks lie on GPUs in order.
  void add(const std::vector<std::uint32_t>& members);

  /// By rank: the lowest member of its communicator.
  const std::vector<std::uint32_t>& group() const { return group_; }
  /// By rank: where it sends to; itself where that does not matter.
  const std::vector<std::uint32_t>& next() const { return next_; }
  /// Whether members are entered and left equally often and nothing else depends on their order.
  bool treats_members_alike() const { return alike_; }

 private:
  const Cluster& cluster_;
  MemberOrder order_;
  bool alike_;
  std::vector<bool> has_;
  std::vector<std::uint32_t> group_, next_;

  /// Returns how many places further along the members each one sends.
  std::size_t step_of(const std::vector<std::uint32_t>& members);
  /// Returns how many members there are in each of several nodes; 0 where not equally many.
  std::size_t members_per_node(const std::vector<std::uint32_t>& members) const;
};

}  // namespace tandem::scenarios
