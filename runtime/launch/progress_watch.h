#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/units.h"

namespace tandem {

inline constexpr std::uint32_t no_task = 0xFFFFFFFF;

/// Where a process is: how far, at which task, and whether that task waits for other processes.
struct ProgressReport {
  std::uint64_t count = 0;  ///< grows with every step forward
  std::uint32_t task = no_task;
  bool waiting = false;
};

/// Finds the process that keeps the others from going on. Times are of any one clock.
class ProgressWatch {
 public:
  /// `timeout`: without progress while others wait as long; `silence`: without any report.
  ProgressWatch(std::size_t processes, Seconds timeout, Seconds silence, Seconds now);

  void report(std::uint32_t rank, const ProgressReport& report, Seconds now);
  const ProgressReport& last(std::uint32_t rank) const { return processes_[rank].report; }

  enum class Reason : std::uint8_t {
    silent,    ///< it sends no reports: its machine or its network is gone, or it is stopped
    stuck,     ///< it goes on with nothing, waits for nobody, and another waits
    deadlock,  ///< all wait for each other; this one has waited longest
  };
  struct Culprit {
    std::uint32_t rank = 0;
    Reason reason = Reason::silent;
  };
  std::optional<Culprit> culprit(Seconds now) const;

 private:
  struct Process {
    ProgressReport report;
    Seconds heard = 0, advanced = 0;
  };
  Seconds timeout_, silence_;
  std::vector<Process> processes_;
};

}  // namespace tandem
