#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"
#include "sim/collective_cost.h"
#include "sim/kernel_times.h"

namespace tandem::sim {

/// Returns how many times as long a kernel takes whose device has `occupation` taken from it: with S multiprocessors, of which c
/// are taken, and achieved memory bandwidth B, of which b is taken,
///   launch + max(computing S / (S - c), moving B / (B - b))    over    launch + max(computing, moving)
/// A kernel's tiles are shared out evenly among what multiprocessors are left: waves, whole ones of which are lost where tiles
/// just filled the device (observed: 132 tiles on an H100 take twice as long beside 24 channels, NVIDIA developer forums, topic
/// 337991), are not told apart, for a collective begins and ends anywhere in a wave. On 4 A100 and H100, kernels beside
/// collectives took 18.9 % longer on average and 40 % at most (arXiv 2507.03114); 24 channels make it 22 % on an H100, 29 % on an
/// A100. At least one multiprocessor and half of the bandwidth are left to kernels.
double slowdown(const KernelTime& kernel, const Device& device, const Occupation& occupation);

/// The same for a kernel of a DAG. Matrix products leave `Software::gemm_sm_margin` multiprocessors alone even where no
/// communication takes them. On the host, and on a device whose number of multiprocessors is not known, nothing slows a kernel.
double slowdown_beside(const Dag& dag, const KernelTimes& times, TaskId task, const Occupation& taken);

/// A kernel of a run: kernels of one stream, each of which begins when the one before it has ended, though not before its own
/// date.
struct Turn {
  TaskId task = 0;
  Seconds alone = 0;       ///< what it takes with the device to itself
  Seconds not_before = 0;  ///< the date of the first one is when the run begins
  // Told by Contention.
  Seconds start = 0, end = 0;
  double slowdown = 1;  ///< from its start, or the last change, on
};

/// Kernels beside communication, rank by rank: a kernel's rate changes whenever a collective on its rank begins or ends, and its
/// remaining work goes on at the new one.
///
/// Communication is charged to a rank while it runs; that of several collectives adds up. What is left out: collectives are not
/// slowed by kernels, nor does one that has to wait for other members yet hold multiprocessors. Kernels of one rank at the same
/// time on several streams do not slow each other.
class Contention {
 public:
  /// `redated` is told of the last kernel of each run that now ends at another date.
  Contention(const Dag& dag, const KernelTimes& times, std::function<void(TaskId, Seconds)> redated);

  /// Starts a run. Returns the date of its end, which holds until `redated` says otherwise.
  Seconds begin_run(std::span<const Turn> turns);
  /// Returns the run whose last kernel this is if it ends at this date: it has ended then, and what is returned holds until the
  /// next call. Returns nothing if it ends at another.
  std::span<const Turn> end_run(TaskId last, Seconds date);

  /// Charges a collective to the ranks of its unit.
  void begin_communication(std::span<const TaskId> unit, const Occupation& occupation, Seconds now);
  void end_communication(std::span<const TaskId> unit, Seconds now);

 private:
  struct Run {
    std::vector<Turn> turns;
    std::size_t ended = 0;  ///< so many of these had when something last began or ended on the rank
  };
  struct Communication {
    TaskId task = 0;
    Occupation occupation;
  };
  struct OnRank {
    bool is_contended = false;
    std::vector<Run> runs;
    std::vector<Communication> communications;
    Occupation taken;  ///< by all of these
  };

  const Dag& dag_;
  const KernelTimes& times_;
  std::function<void(TaskId, Seconds)> redated_;
  std::vector<OnRank> ranks_;
  std::vector<Run> unused_;  ///< the last one is what ended last

  /// Dates the turns of a run from this one on.
  void date(const OnRank& rank, Run& run, std::size_t from) const;
  void redate(OnRank& rank, Seconds now);
};

}  // namespace tandem::sim
