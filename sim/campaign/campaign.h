#pragma once

#include <cstdint>
#include <limits>

#include "runtime/base/units.h"
#include "sim/campaign/checkpoint_times.h"
#include "sim/campaign/failure_rates.h"

namespace tandem::sim {

/// Weeks of training, in seconds. Work is counted in seconds of training at full speed.
struct CampaignModel {
  static constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

  Seconds work = never;      ///< after which it is done
  Seconds longest = never;   ///< after which it ends, done or not
  Seconds interval = never;  ///< work between two checkpoints; never: none but at the end
  CheckpointTimes checkpoint;
  ByComponent failures;     ///< per second
  double planned_rate = 0;  ///< planned stops per second, each with a checkpoint before it
  Seconds detection = 0;    ///< from a failure until the job is stopped and what failed is found
  Seconds restart = 0;      ///< until it trains again, loading included

  std::int64_t nodes = 1;
  std::int64_t spare_nodes = 0;
  Seconds repair = 0;          ///< until a node that was taken out can be had again
  double slow_share = 0;       ///< of all nodes
  double slow_speed = 1;       ///< of the whole job with a slow node in it, over its full speed
  Seconds slow_found = never;  ///< training with a slow node until it is stopped to have it replaced
};

/// The parts of a campaign's time.
struct CampaignTimes {
  Seconds training = 0;    ///< that was kept, at full speed
  Seconds slow = 0;        ///< more than that because a node was slow
  Seconds checkpoint = 0;  ///< stalls of checkpoints that were kept
  Seconds lost = 0;        ///< since the last durable checkpoint before a failure
  Seconds detection = 0;
  Seconds restart = 0;
  Seconds waiting = 0;  ///< for a node, where no spare was left

  Seconds total() const { return training + slow + checkpoint + lost + detection + restart + waiting; }
};

/// One campaign as it may come about.
struct CampaignRun {
  CampaignTimes times;
  ByComponent failures;  ///< counted
  double planned_stops = 0;
  double slow_found = 0;  ///< stops to replace slow nodes
  double luck = 0;        ///< a standard normal number for what the caller does not know, either
};

/// Plays one campaign, from failure to failure:
///
///   training    A checkpoint after each `interval` of work. A failure (exponential; the component by its share of the rates)
///   loses
///               what was done since the last one that was durable by then. With a slow node in the job all of it is slow.
///   detection   Nothing else is found out meanwhile.
///   waiting     The failure took a node out (all but those of the software): a spare takes its place, else one that comes back
///   from
///               repair, else the job waits for the next. A node that joins is slow with probability `slow_share`.
///   restart     May fail like training, and begins anew after that.
///
/// A planned stop ends a run without loss: it writes a checkpoint and restarts. So does a slow node that is found, if a spare is
/// there. A campaign begins with a restart and ends with a checkpoint.
///
/// The same for the same `seed` and `index`, and independent of others.
/// Throws std::runtime_error for a campaign that gets nowhere.
CampaignRun play_campaign(const CampaignModel& model, std::uint64_t seed, std::uint64_t index);

}  // namespace tandem::sim
