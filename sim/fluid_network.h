#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"
#include "sim/collective_cost.h"

namespace tandem::sim {

using FlowId = std::uint32_t;  ///< whatever its owner calls it by: a task, or a message

/// The cluster's links on SimGrid, and the collectives or messages that run over them as fluid flows.
///
/// Flows share a link max-min fairly: each gets the same rate per channel, as far as its other links let it, and a flow of rate x
/// takes `multiplicity * x` of a link's capacity (SimGrid's CM02 model, a link repeated in the route as often as it is crossed).
/// A flow with a rate limit never exceeds it; what it leaves is the others'.
/// SimGrid knows one engine per process: make one object per process.
class FluidNetwork {
 public:
  struct Callbacks {
    std::function<void(FlowId)> flow_ended;  ///< must not start a flow: wait for `woken`
    std::function<void()> woken;             ///< the clock is at the date given to `wake_at`, or one rounding error past it
  };
  /// `lanes`: how many flows can run at once; each runs in a lane of its own.
  FluidNetwork(const std::vector<Link>& links, const std::vector<Communicator>& communicators, std::size_t lanes,
               Callbacks callbacks);
  ~FluidNetwork();

  /// A transfer of no bytes, or over no links, is no flow: it takes its latency alone.
  static bool is_flow(const CollectiveCost& cost, const Layout& layout);
  /// `bytes` > 0 over at least one of the crossings of a path or hop of the communicators; `rate_limit` 0: none.
  void start(FlowId flow, std::size_t lane, Seconds latency, double bytes, std::span<const Crossing> crossings,
             BytesPerSecond rate_limit);

  /// One call is due at most: this replaces the one before.
  void wake_at(Seconds date);

  Seconds clock() const;

  /// Returns when no flow runs and no call is due.
  void run();

  /// Has the clock start at 0 once more, for others than those who were called before. Nothing may run, and no call be due.
  /// SimGrid's own clock goes on, so dates differ by its roundings from those of a new object.
  void begin_anew(Callbacks callbacks);

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace tandem::sim
