#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/rings.h"
#include "topology/cluster.h"

namespace tandem::scenarios {

/// Translations of the mesh along its axes that leave the cluster as it is: shifting every rank by some places along an axis
/// takes GPUs of one node to GPUs of one node, and likewise for NICs, leaves and pods, and slow GPUs to equally slow ones. What
/// lies in one orbit of all of these behaves alike, so only one of each orbit need be looked at: the work of folding then follows
/// the irregularity of the cluster, not its size.
///
/// Communicators have to go to communicators, and the links that one crosses to those that its image crosses. Of most this
/// follows: a shift changes all members of a communicator by the same, or goes round in one that lies along its axis alone, and
/// what is exchanged between all of some ranks has no order. Rings through several axes are looked at. A shift may take each
/// of their steps to a step. Or it leaves every rank below its leaf and in its communicator: this crosses the ports and NICs of
/// all members equally often, and the links above leaves as often as their leaves change along it, whoever is below them.
class Symmetry {
 public:
  /// Neighbours along an axis that make up communicators, so many each: shifts move whole ones.
  struct Runs {
    Axis axis = Axis::tp;
    std::int64_t length = 1;
  };
  /// The properties of communicators that have to stay as they are.
  struct Communicators {
    std::vector<Rings> rings;      ///< those through several axes, or through some of the ranks along an axis
    std::vector<Axis> trees = {};  ///< along which a rank's place in a tree would change: never shifted
    std::vector<Runs> runs = {};
  };

  /// Finds the largest group of shifts that the cluster, `colours` (by rank: what must stay the same) and the communicators
  /// admit. Pipeline stages run different programs and are never shifted. Ranks lie on GPUs in order; the cluster is regular.
  Symmetry(const Mesh& mesh, const Cluster& cluster, const std::vector<std::uint32_t>& colours,
           const Communicators& communicators);

  /// Makes no symmetry: every rank stands for itself.
  Symmetry(const Mesh& mesh, const Cluster& cluster);

  /// Returns the lowest rank of each orbit, ascending. All orbits have the same size.
  const std::vector<std::uint32_t>& representatives() const { return representatives_; }
  std::uint32_t orbit_size() const { return orbit_size_; }
  /// Returns the rank's index into `representatives`.
  std::uint32_t orbit_of(std::uint32_t rank) const { return orbit_of_[rank]; }

  /// Returns the representative of the link's orbit: links fall into orbits, too.
  LinkId representative_link(LinkId link) const;
  std::uint32_t link_orbit_size(LinkId representative) const;

 private:
  std::vector<std::uint32_t> representatives_;
  std::uint32_t orbit_size_ = 1;
  std::vector<std::uint32_t> orbit_of_;
  std::vector<std::uint32_t> device_orbit_;       ///< by device of the cluster: the lowest device of its orbit
  std::vector<std::uint32_t> device_orbit_size_;  ///< by lowest device

  void count_orbits(const Mesh& mesh, const std::vector<std::int64_t>& periods);
  void unite_devices(const std::vector<std::uint32_t>& device_of);
  void count_device_orbits();
};

}  // namespace tandem::scenarios
