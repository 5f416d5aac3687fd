#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/dag/dag.h"
#include "sim/collective_cost.h"
#include "sim/kernel_times.h"

namespace tandem::sim {

/// Tells what most of a task's ideal time goes to. The DAG must outlive it.
class Bottlenecks {
 public:
  explicit Bottlenecks(const Dag& dag) : dag_(dag), kernels_(dag), collectives_(dag) {}

  /// Returns for a kernel "arithmetic", "memory" or "launch", the largest term of its roofline, the first of equal ones; for
  /// communication the name of the tier of `tier_of`, else "latency".
  std::string_view of(TaskId id);

  /// Returns for communication the tier of the link that by itself holds the rate down most, that of the smallest capacity /
  /// multiplicity, in a folded DAG with all communicators of the class on it. None where latency takes at least half of the time
  /// on an idle network (`uncontended_time`), or no link is crossed. A protocol that is slower than the link changes the time,
  /// but not the tier.
  std::optional<Tier> tier_of(const Task& task);

 private:
  struct Narrowest {
    Tier tier = Tier::nvlink;
    BytesPerSecond rate = 0;  ///< of a channel; 0: crosses no link
  };
  const Dag& dag_;
  KernelTimes kernels_;
  CollectiveCosts collectives_;
  std::map<std::pair<CommunicatorId, std::uint32_t>, Narrowest> narrowest_;  ///< by index of the path, too

  const Narrowest& narrowest(CommunicatorId communicator, std::uint32_t path);
};

}  // namespace tandem::sim
