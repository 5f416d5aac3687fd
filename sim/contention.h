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

/// Kernels beside communication, rank by rank: a kernel's rate changes whenever a collective on its rank begins or ends, and its
/// remaining work goes on at the new one.
///
/// Communication is charged to a rank while it runs; that of several collectives adds up. What is left out: collectives are not
/// slowed by kernels, nor does one that has to wait for other members yet hold multiprocessors. Kernels of one rank at the same
/// time on several streams do not slow each other.
class Contention {
 public:
  /// `redated` is told of each kernel that now ends at another date.
  Contention(const Dag& dag, const KernelTimes& times, std::function<void(TaskId, Seconds)> redated);

  /// Starts a kernel that takes `alone` with the device to itself. Returns the date of its end, which holds until `redated` says
  /// otherwise.
  Seconds begin_kernel(TaskId task, Seconds alone, Seconds now);
  /// Returns whether the kernel ends at this date; if so, it has ended.
  bool end_kernel(TaskId task, Seconds date);

  /// Charges a collective to the ranks of its unit.
  void begin_communication(std::span<const TaskId> unit, const Occupation& occupation, Seconds now);
  void end_communication(std::span<const TaskId> unit, Seconds now);

 private:
  struct Kernel {
    TaskId task = 0;
    Seconds start = 0, end = 0;
    double slowdown = 1;
  };
  struct Communication {
    TaskId task = 0;
    Occupation occupation;
  };
  struct OnRank {
    bool is_contended = false;
    std::vector<Kernel> kernels;
    std::vector<Communication> communications;
    Occupation taken;  ///< by all of these
  };

  const Dag& dag_;
  const KernelTimes& times_;
  std::function<void(TaskId, Seconds)> redated_;
  std::vector<OnRank> ranks_;

  /// The host computes apart from the GPU.
  bool is_on_host(TaskId task) const { return dag_.tasks[task].stream == Stream::host; }
  void redate(OnRank& rank, Seconds now);
};

}  // namespace tandem::sim
