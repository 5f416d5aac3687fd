#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/mesh/mesh.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A rank's place in the expert part of its pipeline stage.
struct ExpertPlace {
  std::int32_t etp = 0, ep = 0;
  std::int32_t replica = 0;  ///< among the ranks that hold the same experts' weights
};

enum class ExpertAxis : std::uint8_t {
  tensor,
  expert,
  replica
};

/// The second mesh over the same ranks, in which experts are sharded: etp x ep x replicas inside each pipeline stage.
///
/// The ranks of a stage are numbered in the order of the dense mesh's axes. Folded, etp is innermost, then ep, then the replicas:
/// ep groups are runs of etp * ep of these numbers. With an ep axis of its own, ep is the coordinate on it and the ranks of equal
/// ep are split into etp and replicas.
class ExpertMesh {
 public:
  ExpertMesh(const ParallelismSpec& parallelism, const Mesh& mesh);

  ExpertPlace place(std::uint32_t rank) const;
  /// The ranks that differ from `rank` along `axis` alone, ascending.
  std::vector<std::uint32_t> members(std::uint32_t rank, ExpertAxis axis) const;

 private:
  const Mesh& mesh_;
  std::vector<Axis> axes_;  ///< that number the ranks split into etp (and ep, when folded) and replicas; innermost first
  std::vector<std::uint32_t> offsets_;  ///< by number: the rank, counted from that of number 0
  std::int64_t etp_, ep_, replicas_;
  bool own_axis_;

  std::int64_t number(const Coordinates& place) const;
};

/// Returns the number of nodes that the experts of one layer lie in, for ranks laid out in ascending order.
std::int64_t expert_nodes(const Scenario& scenario);

/// Returns whether each of these nodes holds as many experts, the first ones in one, the next in another, for every group of
/// ranks that holds all of them.
bool nodes_hold_equal_runs(const Scenario& scenario);

}  // namespace tandem::scenarios
