#pragma once

#include <cstdint>
#include <functional>
#include <future>
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
  virtual ~FluidNetwork() = default;

  /// A transfer of no bytes, or over no links, is no flow: it takes its latency alone.
  static bool is_flow(const CollectiveCost& cost, const Layout& layout);
  /// `bytes` > 0 over at least one of the crossings of a path or hop of the communicators; `rate_limit` 0: none.
  virtual void start(FlowId flow, std::size_t lane, Seconds latency, double bytes, std::span<const Crossing> crossings,
                     BytesPerSecond rate_limit) = 0;

  /// One call is due at most: this replaces the one before.
  virtual void wake_at(Seconds date) = 0;

  virtual Seconds clock() const = 0;

  /// Returns when no flow runs and no call is due.
  virtual void run() = 0;

  /// Has the clock start at 0 once more, for others than those who were called before. Nothing may run, and no call be due.
  /// SimGrid's own clock goes on, so dates differ by its roundings from those of a new object.
  virtual void begin_anew(Callbacks callbacks) = 0;
};

/// What a network is made of. `lanes`: how many flows can run at once; each runs in a lane of its own.
struct NetworkParts {
  const std::vector<Link>& links;
  const std::vector<Communicator>& communicators;
  std::size_t lanes = 0;
};

/// Opens the module first (see `open_simgrid`).
std::unique_ptr<FluidNetwork> make_fluid_network(const NetworkParts& parts, FluidNetwork::Callbacks callbacks);

/// Loads SimGrid and the libraries that it asks for, which takes as long as the rest of a program's start. They are in a
/// module of their own, tandem_simgrid.so, so that a program loads them when it simulates, once, and beside other work: another
/// thread may call this meanwhile. Whoever forks children that simulate opens it first, and never forks while another thread
/// does. Throws std::runtime_error where the module is not found.
void open_simgrid();
/// Begins to, on another thread where there may be one, and keeps threads for other work (`keep_threads`). What is returned waits
/// for it at its end.
[[nodiscard]] std::future<void> open_simgrid_beside();

/// What the module has: the function `tandem_make_network`.
using MakeNetwork = FluidNetwork*(const NetworkParts& parts, FluidNetwork::Callbacks callbacks);

}  // namespace tandem::sim
