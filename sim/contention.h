#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"
#include "sim/collective_cost.h"
#include "sim/kernel_times.h"
#include "sim/speedup.h"

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

/// Says slowdown_beside(), which it works out once for a kernel and what is taken, as long as few different things are.
class Slowdowns {
 public:
  /// Both must outlive it.
  Slowdowns(const Dag& dag, const KernelTimes& times);

  /// Returns the place among its memories of what is taken.
  static std::size_t place_of(const Occupation& taken);
  double of(TaskId task, const Occupation& taken, std::size_t place);

 private:
  struct Known {
    Occupation taken;
    double slowdown = 0;  ///< 0: not known
  };
  static constexpr std::size_t places = 8;

  const Dag& dag_;
  const KernelTimes& times_;
  std::vector<Known> known_;  ///< by place, then by kernel
};

/// Kernels of one stream with numbers from `first` to `last`, each of which begins when the one before it has ended.
struct KernelRun {
  TaskId first = 0, last = 0;
  std::span<const Seconds> not_before = {};  ///< by kernel, a date before which it does not begin; empty where none waits for one
  double factor = 1;                         ///< of what each takes alone
};

/// Kernels beside communication, rank by rank: a kernel's rate changes whenever a collective on its rank begins or ends, and its
/// remaining work goes on at the new one.
///
/// Communication is charged to a rank while it runs; that of several collectives adds up. What is left out: collectives are not
/// slowed by kernels, nor does one that has to wait for other members yet hold multiprocessors. Kernels of one rank at the same
/// time on several streams do not slow each other.
class Contention {
 public:
  struct Dates {
    std::span<const Seconds> starts, ends;  ///< by kernel of a run
  };

  /// `redated` is told of the last kernel of each run that now ends at another date. DAG and times must outlive it.
  Contention(const Dag& dag, const KernelTimes& times, const Speedup& speedup, std::function<void(TaskId, Seconds)> redated);

  /// Returns what a kernel takes alone.
  Seconds alone(TaskId id) const { return (*ranks_[dag_.tasks[id].rank].alone)[dag_.tasks[id].kernel]; }

  /// Starts a run. Returns the date of its end, which holds until `redated` says otherwise.
  Seconds begin_run(const KernelRun& run, Seconds now);
  /// Ends the run with this last kernel at its date. What is returned holds until the next call.
  Dates end_run(TaskId last);

  /// Charges a collective to the ranks of its unit.
  void begin_communication(std::span<const TaskId> unit, const Occupation& occupation, Seconds now);
  void end_communication(std::span<const TaskId> unit, Seconds now);

 private:
  struct Running {
    KernelRun run;
    std::vector<Seconds> starts, ends;
    std::size_t ended = 0;  ///< so many of these had when something last began or ended on the rank
  };
  struct Communication {
    TaskId task = 0;
    Occupation occupation;
  };
  struct OnRank {
    const std::vector<Seconds>* alone = nullptr;  ///< by kernel
    bool is_contended = false;
    std::vector<Running> runs;
    std::vector<Communication> communications;
    Occupation taken;  ///< by all of these
    std::size_t place = Slowdowns::place_of({});
  };

  const Dag& dag_;
  std::function<void(TaskId, Seconds)> redated_;
  std::vector<Seconds> alone_;           ///< by kernel
  std::vector<Seconds> alone_on_stage_;  ///< where a stage is faster
  std::vector<OnRank> ranks_;
  Slowdowns slowdowns_;
  std::vector<Running> unused_;  ///< the last one is what ended last

  double slowdown_of(const OnRank& rank, TaskId kernel);
  /// Dates the kernels of a run from this one on, which begins when the one before it has ended, the first one at `now`.
  void date(const OnRank& rank, Running& running, std::size_t from, Seconds now);
  void redate(OnRank& rank, Seconds now);
};

}  // namespace tandem::sim
