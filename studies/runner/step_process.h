#pragma once

#include <string>

#include "runtime/base/stopwatch.h"
#include "sim/child_process.h"
#include "studies/runner/signals.h"
#include "studies/runner/step_job.h"

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

/// Simulates one scenario in a forked child of this process, which sends back one JSON value: the result, or why there is none. A
/// child that crashes or is killed takes nothing else with it. It dies with this object and with the thread that made it.
class StepProcess {
 public:
  /// Starts the process, which may take so much memory. `scenario` is validated, `text` is the same scenario in YAML. Throws
  /// std::system_error where no process can be had.
  StepProcess(const Scenario& scenario, const std::string& text, Bytes memory, const ChildSignals& signals);

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

/// Returns the time of day in UTC as ISO 8601, to the second.
std::string utc_now();

}  // namespace tandem::studies
