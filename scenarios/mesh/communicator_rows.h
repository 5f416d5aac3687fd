#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"
#include "topology/cluster.h"

namespace tandem::scenarios {

/// How far up a communicator's traffic goes.
enum class Reach : std::uint8_t {
  node,
  rail,  ///< below the leaves, each of which is a rail's
  leaf,  ///< below the leaves, of a fabric without rails
  pod,   ///< over spines
  core   ///< over cores, or from group to group
};
constexpr const char* name_of(Reach reach) {
  constexpr const char* names[] = {"node", "rail", "leaf", "pod", "core"};
  return names[static_cast<int>(reach)];
}

/// By the links that its first path crosses.
Reach reach_of(const Cluster& cluster, const Layout& layout);

/// Communicators of one family that lie alike: of equally many ranks, on equally many nodes, reaching equally far.
struct CommunicatorRow {
  template <typename T>
  struct Span {
    T least, most;
    bool operator==(const Span&) const = default;
  };

  std::string family;  ///< as the timeline calls it: "tp", "dp", "pp forward", ...
  Axis axis = Axis::none;
  std::int64_t communicators = 0;
  std::uint32_t ranks = 0;  ///< of each
  std::uint32_t nodes = 0;
  Reach reach = Reach::node;
  std::array<Span<std::uint32_t>, tier_count> links{};  ///< directed links that one of them crosses, by tier
  Span<Seconds> hop{};                                  ///< latency of its longest hop

  /// Bus bandwidth of its ring, of the messages of a pair, or of all that one member sends in an all-to-all: with x = min over
  /// its links of capacity / multiplicity, `channels` x. Nothing where it only ever carries a number. `alone`: nothing else is on
  /// the network. `together`: every communicator of the family sends at once, all at the rate that the fullest of its links
  /// leaves to each.
  std::optional<Span<BytesPerSecond>> alone = {}, together = {};

  bool operator==(const CommunicatorRow&) const = default;
};

/// Where the communicators of the mesh lie, in the order in which a step's lowering meets their families.
/// `folded`: looks at one of each orbit of communicators (see symmetry.h), which changes nothing but the time it takes.
/// Throws TopologyError.
std::vector<CommunicatorRow> communicator_rows(const Scenario& scenario, bool folded = true);

/// The farthest that any of the communicators of each axis reaches. Throws TopologyError.
std::map<Axis, Reach> farthest_reaches(const Scenario& scenario);

}  // namespace tandem::scenarios
