#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>

#include "runtime/base/units.h"

namespace tandem::sim {

/// Data-parallel replicas, each of which computes gradients at its own pace.
struct Replicas {
  std::size_t count = 1;
  /// Returns how long a replica's step takes by itself, the steps of each counted from 0: a function of both numbers alone, so
  /// that every policy meets the same steps.
  std::function<Seconds(std::size_t replica, std::uint64_t step)> step;
  /// Returns what the exchange of gradients and weights with the others adds to a replica's step. In rounds it is that of the
  /// replica whose gradient closes the round.
  std::function<Seconds(std::size_t replica)> exchange;
  /// Of one update at parameter servers, which have all updates of replicas without rounds one after the other, as they come. An
  /// update takes as long as they need for it and those before it, and `exchange` at least. 0: nothing queues.
  Seconds service = 0;
};

/// How long to play: rounds, or for replicas that take no rounds as many updates as `replicas.count` such rounds have. What
/// happens in the first `warm_up` of them is not counted.
struct PlayLength {
  std::uint64_t warm_up = 0;
  std::uint64_t counted = 1;
};

/// What a replica does whose gradient comes too late for its round.
enum class Late : std::uint8_t {
  finishes,  ///< it computes on, drops the gradient, and goes on with the weights of that moment
  abandons   ///< it stops, and begins the next round with the others
};

/// What one update of the weights takes.
struct Rounds {
  std::size_t needed = 1;   ///< gradients: the first ones that arrive, the others are dropped
  std::uint64_t every = 1;  ///< steps of each replica by itself, after which all exchange (local SGD); above 1 all are needed
  Late late = Late::finishes;
};

/// What was counted. Gradients are conserved: in_flight_before + begun = applied + dropped + in_flight_after.
struct ReplicaPlay {
  Seconds time = 0;
  std::uint64_t updates = 0;  ///< of the weights
  std::uint64_t begun = 0, applied = 0, dropped = 0;
  std::uint64_t in_flight_before = 0, in_flight_after = 0;
  Seconds waited = 0;                                ///< for other replicas, all replicas together; without the exchange
  Seconds wasted = 0;                                ///< on gradients that were dropped, all replicas together
  std::map<std::uint64_t, std::uint64_t> staleness;  ///< applied gradients by how many updates their weights lacked
  std::uint64_t most_ahead = 0;                      ///< steps that a replica that began one had taken more than the slowest

  double dropped_share() const;  ///< of the gradients that were computed to the end or abandoned
  double mean_staleness() const;
  std::uint64_t most_stale() const { return staleness.empty() ? 0 : staleness.rbegin()->first; }
};

/// Plays replicas that take rounds. In a round each computes a gradient from the same weights; the round closes when `needed` of
/// them have arrived, and the next begins an exchange later. With all needed this is a synchronous step (staleness 0); with
/// fewer, the others are backup workers (Chen et al. 2016, "Revisiting distributed synchronous SGD", arXiv 1604.00981, algorithms
/// 3 and 4). Of replicas that arrive at once, those of lower numbers come first.
///
/// A replica that finishes late begins a gradient from the current weights, unless the round has closed by then.
ReplicaPlay play_rounds(const Replicas& replicas, const Rounds& rounds, const PlayLength& length);

inline constexpr std::uint64_t any_lead = std::numeric_limits<std::uint64_t>::max();

/// Plays replicas that each update the weights by themselves, as soon as they have a gradient and have exchanged it, and read the
/// weights then. One that has taken more than `lead` steps more than the slowest waits, and reads the weights when it goes on:
/// stale synchronous parallel (Ho et al. 2013, "More effective distributed ML via a stale synchronous parallel parameter server",
/// NIPS), or with `any_lead` asynchronous SGD.
///
/// Between two updates of a replica that never waits each of the others' updates falls once, so the mean staleness is
/// `count` - 1, whatever the paces.
ReplicaPlay play_freely(const Replicas& replicas, std::uint64_t lead, const PlayLength& length);

}  // namespace tandem::sim
