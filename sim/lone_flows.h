#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::sim {

/// Tells which flows have all of their links to themselves: SimGrid need not know these, as they end when their cost says.
///
/// A flow begins alone where no other one runs on any of its links. When one does begin there, what is left of both goes on in
/// the network. So a link has either one lone flow, or any number of flows of the network. A flow of the network stays there when
/// those that it met have ended.
///
/// Dates differ from the network's by the last bits, since SimGrid's clock is a sum of steps.
class LoneFlows {
 public:
  struct Flow {
    TaskId task = no_id;
    std::uint32_t lane = 0;
    Seconds latency = 0;
    double bytes = 0;  ///< over each channel
    std::span<const Crossing> crossings = {};
    BytesPerSecond rate_limit = 0;
  };

  LoneFlows(std::size_t links, std::size_t lanes) : links_(links), lanes_(lanes) {}

  /// Begins a flow that takes `alone` on an idle network, in a lane where none runs. Returns whether it is alone. If not, it
  /// belongs into the network, and so does what is left of the lone flows that it has met (see `met`).
  bool begin(const Flow& flow, Seconds alone, Seconds now);
  /// Returns what is left of the lone flows that the last one to begin has met: they do not end when they were to.
  std::span<const Flow> met() const { return met_; }

  /// Says that what ran in this lane has ended, a flow or not.
  void end(std::uint32_t lane) { leave(lanes_[lane]); }

 private:
  struct Running {
    Flow flow;
    Seconds moves = 0, ends = 0;  ///< of a lone flow: when its first byte moves, and when its last one has moved
    bool is_alone = false;
  };
  struct OnLink {
    std::uint32_t lone_lane = no_id;  ///< of the lone flow
    std::uint32_t in_network = 0;     ///< flows of the network
  };
  std::vector<OnLink> links_;
  std::vector<Running> lanes_;
  std::vector<Flow> met_;

  bool meet(std::uint32_t lane, Seconds now);
  void enter_links(const Running& running);
  void leave(Running& running);
};

}  // namespace tandem::sim
