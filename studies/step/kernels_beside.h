#pragma once

#include <array>
#include <limits>
#include <vector>

#include "runtime/dag/timeline.h"
#include "sim/collective_cost.h"
#include "sim/kernel_times.h"

namespace tandem::studies {

/// The date of what does not happen.
inline constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

/// What runs on each rank of a simulated step at a date: its kernels, and the communication beside them.
class KernelsBeside {
 public:
  /// All must outlive it. A date up to `shortest` before an event counts as after it.
  KernelsBeside(const Dag& dag, const Timeline& timeline, sim::CollectiveCosts& costs, Seconds shortest);

  /// The kernels that run at some time between two dates, but those on the host.
  std::vector<TaskId> kernels(RankIndex rank, Seconds from, Seconds to) const;
  /// The next date at which one of them begins.
  Seconds next_kernel(RankIndex rank, Seconds date) const;
  /// The communication of a rank at a date.
  std::vector<TaskId> communication(RankIndex rank, Seconds date) const;
  /// The next date at which the communication of a rank changes.
  Seconds next_change(RankIndex rank, Seconds date) const;

  /// How many times as long a kernel takes beside communication.
  double slowdown(TaskId kernel, const std::vector<TaskId>& beside) const;
  /// How long the rest of a kernel that runs would take alone.
  Seconds left_alone(TaskId kernel, Seconds date) const;
  Seconds alone(TaskId kernel) const { return times_.of(kernel); }

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  sim::CollectiveCosts& costs_;
  sim::KernelTimes times_;
  Seconds shortest_;
  struct OfRank {
    std::array<std::vector<TaskId>, stream_count> kernels, communication;  ///< by stream, one after the other
  };
  std::vector<OfRank> ranks_;

  using Place = std::vector<TaskId>::const_iterator;
  /// The first that ends after a date.
  Place first_after(const std::vector<TaskId>& tasks, Seconds date) const;
};

}  // namespace tandem::studies
