#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// One member's operands. `in` and `out` are the same for all_reduce; all_gather's shard may lie in its place of the whole, and
/// so may reduce_scatter's. all_to_all's lie apart: `in` by destination, `out` by source. A sender has no `out`, a receiver no
/// `in`.
/// With a root: broadcast, the root has `in` alone and the others `out` alone; reduce, all have `in`, and the root the same as
/// `out`; gather, all have their part as `in` and the root the whole as `out`; scatter, the root has the whole as `in` and all
/// their part as `out`. The root's part may lie in its place of the whole. A barrier's members have neither.
struct CollectiveMember {
  std::span<float> in;
  std::span<float> out;
};

/// A collective over the memory of all its members, in the order of the communicator. A transfer is a `send` with the source and
/// the destination as members.
struct Collective {
  OpKind op = OpKind::all_reduce;
  Reduction reduction = Reduction::sum;
  std::vector<CollectiveMember> members;
  std::size_t root = 0;  ///< of broadcast, reduce, gather and scatter
};

/// The collective that the tasks of `unit` are. Throws std::logic_error unless they are exactly the communicator's members.
Collective collective_of(const Dag& dag, std::span<const TaskId> unit, const std::function<float*(BufferId)>& data);

/// Runs a collective in two steps, so that no member writes what another still reads, in place or not: every member contributes
/// its share of the result to memory between them, then, when all have, every member collects what it needs. Different members
/// may do the same step at once. Reductions add in the order of the members, so the result is the same on all and in every run.
class CollectiveExchange {
 public:
  /// Throws std::logic_error when the members' sizes do not fit together, or a shard lies in the whole at another's place.
  explicit CollectiveExchange(Collective collective);

  std::size_t members() const { return collective_.members.size(); }
  void contribute(std::size_t member) noexcept;
  void collect(std::size_t member) noexcept;

 private:
  Collective collective_;
  std::size_t elements_;  ///< of the whole vector
  std::unique_ptr<float[]> result_;

  std::span<float> part(std::size_t member) const;
  std::span<float> sent(std::size_t source) const;
  void reduce_part(std::size_t member) noexcept;
};

}  // namespace tandem
