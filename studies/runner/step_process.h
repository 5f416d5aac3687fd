#pragma once

#include <string>

#include "runtime/base/stopwatch.h"
#include "sim/child_process.h"
#include "studies/runner/signals.h"
#include "studies/runner/step_job.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

/// A file in memory, without a name, for what comes out of a process: unlike a pipe, the file never makes either side wait.
class MemoryFile {
 public:
  // All throw std::system_error.

  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(const std::string& text) const;
  std::string read() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// What one of several processes may take of this machine.
struct ProcessShare {
  Bytes memory = 0;
  std::size_t threads = 1;
};
/// Returns the part of each of so many that have this memory and all processors together.
ProcessShare share_of(std::size_t processes, Bytes memory);
/// Has this process and its children keep to it.
void keep_to(const ProcessShare& share);

/// Simulates one scenario in a forked child of this process, which sends back one JSON value: the result, or why there is none. A
/// child that crashes or is killed takes nothing else with it. It dies with this object and with the thread that made it.
class StepProcess {
 public:
  /// Starts the process, which keeps to the share. `scenario` is validated, `text` is the same scenario in YAML. Throws
  /// std::system_error where no process can be had.
  StepProcess(const Scenario& scenario, const std::string& text, const ProcessShare& share, const ChildSignals& signals);

  bool has_ended() const { return child_.has_ended(); }

  /// What became of the step, and the bytes of the JSON result; empty for a failure.
  struct End {
    StepOutcome outcome;
    std::string json;
  };
  /// Returns how the process ended. To be called once, when it has.
  End end();

 private:
  std::string started_;
  Stopwatch stopwatch_;
  MemoryFile output_;
  ChildProcess child_;
};

/// Returns the result of simulate_in_full, which a forked child of this process finds and sends back. The child simulates the
/// step itself and then ends, so no timeline is copied from process to process (sim::simulate_here), and this one may simulate
/// afterwards. Throws what simulate_in_full throws, and std::runtime_error where the child dies.
StepResult result_from_child(const Scenario& scenario, bool folded, const SimulationOptions& options, const Stopwatch& stopwatch);

/// Returns the time of day in UTC as ISO 8601, to the second.
std::string utc_now();

}  // namespace tandem::studies
