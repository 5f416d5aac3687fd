#pragma once

#include <string>

#include "runtime/base/stopwatch.h"
#include "sim/child_process.h"
#include "studies/runner/signals.h"
#include "studies/runner/step_job.h"

namespace tandem::studies {

/// A file without a name in memory, for what comes out of a process: unlike a pipe it never makes either side wait.
class MemoryFile {
 public:
  /// All throw std::system_error.
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(const std::string& text) const;
  std::string read() const;

 private:
  int descriptor_;
};

/// Simulates one scenario in a forked child of this process, which sends back one JSON value: the result, or why there is none. A
/// child that crashes or is killed takes nothing else with it. It dies with this object and with the thread that made it.
class StepProcess {
 public:
  /// `scenario` is validated, `text` the same in YAML. Throws std::system_error where no process can be had.
  StepProcess(const Scenario& scenario, const std::string& text, const ChildSignals& signals);

  bool has_ended() const { return child_.has_ended(); }

  /// How it ended, and the bytes of its JSON result; empty for a failure.
  struct End {
    StepOutcome outcome;
    std::string json;
  };
  /// To be called once, when it has ended.
  End end();

 private:
  std::string started_;
  Stopwatch stopwatch_;
  MemoryFile output_;
  ChildProcess child_;
};

/// ISO 8601, in seconds.
std::string utc_now();

}  // namespace tandem::studies
