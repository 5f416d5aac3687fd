#pragma once

#include <cstdint>
#include <vector>

namespace tandem::topology {

/// What folding sees of a step on a cluster: ranks, the communicators they take part in, and the links those cross.
///
/// Elements that are known to behave alike may be merged beforehand: a "rank" is then an orbit of ranks, and so on. The counts
/// below say how many of one kind each one of the other meets.
///
/// A rank takes part in a communicator through a *slot* (its role there: "my tensor-parallel group", "the pair I send forward
/// on"), at most one communicator per slot. Initial colours say what is known to differ: a rank's program and device, a link's
/// capacity, a communicator's kind and latency.
struct FoldInput {
  struct Crossing {
    std::uint32_t communicator;
    std::uint32_t link;
    std::uint32_t of_communicator;  ///< how often one communicator crosses links of this orbit
    std::uint32_t of_link;          ///< how often one link is crossed by communicators of this orbit
    std::uint32_t path = 0;         ///< the communicator's, by which it crosses; below 2^24
  };
  std::vector<std::uint64_t> rank_colours;
  std::vector<std::uint64_t> communicator_colours;
  std::vector<std::uint32_t> members_per_rank;  ///< by communicator: members it has of each orbit of ranks that takes part
  std::vector<std::uint64_t> link_colours;
  std::vector<std::vector<std::uint32_t>> slots;  ///< [slot][rank] -> communicator, or `absent`
  std::vector<Crossing> crossings;
  /// By link: whether it never holds a flow back (see runtime/dag/nonbinding_links.h). These are told apart by who crosses them,
  /// and tell nobody apart. Empty: each may.
  std::vector<bool> nonbinding = {};

  bool tells_apart(std::uint32_t link) const { return nonbinding.empty() || !nonbinding[link]; }

  static constexpr std::uint32_t absent = 0xFFFFFFFF;
};

/// Classes of equal things, numbered by first appearance, so that a class's representative is its lowest member.
struct Classes {
  std::vector<std::uint32_t> of;              ///< by element
  std::vector<std::uint32_t> representative;  ///< by class
  std::vector<std::uint32_t> size;            ///< by class

  std::size_t count() const { return representative.size(); }
};

struct Partition {
  Classes ranks;
  Classes communicators;
  Classes links;
};

/// The hash of colours that `fold` begins with. With few bits, which is for tests, it merges what differs.
struct ColourHash {
  std::uint64_t seed = 0;
  int bits = 64;
};

/// Finds the coarsest equitable partition that refines the initial colours: each rank of a class meets the same classes of
/// communicators in the same slots; each communicator of a class has the same numbers of members of each class by slot, and
/// crosses each class of links that may bind equally often; each link of a class is crossed equally often by each class of
/// communicators.
///
/// Then one representative has exactly the times of its class: dependency release depends on those counts alone, and the max-min
/// fair rates x of flows under sum(multiplicity * x) <= capacity are the same for all flows of a class, because giving each flow
/// its class's rate satisfies every constraint and keeps every flow's bottleneck saturated. Constraints that follow from others
/// change neither. So flows of a class may cross different links that do not bind, and the loads of each such link are still
/// right.
///
/// Colour refinement (Weisfeiler-Leman, one dimension) on 64-bit hashes finds the partition, which never splits what is alike,
/// and `is_equitable` decides whether it is one: where a collision of hashes merged what differs, another hash is tried.
/// Throws std::logic_error when eight hashes collide, which happens only where a path number is 2^24 or more.
Partition fold(const FoldInput& input, ColourHash first = {});

/// Whether the partition refines the initial colours and everything of a class meets the same classes equally often. Compares
/// each element with the representative of its class, without hashes.
bool is_equitable(const FoldInput& input, const Partition& partition);

/// Puts everything into a class of its own, which gives the unfolded step.
Partition unfolded(const FoldInput& input);

}  // namespace tandem::topology
