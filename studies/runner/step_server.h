#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/stopwatch.h"
#include "sim/child_process.h"
#include "studies/runner/memory_file.h"
#include "studies/runner/process_share.h"
#include "studies/runner/signals.h"
#include "studies/runner/step_job.h"

namespace tandem::studies {

/// A process that forks a child for each step that it is given, one after the other. It holds little and writes nothing while a
/// child runs. A child of a process that goes on working shares its pages with that: each that either writes is copied first.
///
/// A child that crashes or is killed takes nothing else with it. Server and child die with this object and with the thread that
/// made it.
class StepServer {
 public:
  /// Starts the process. Its children keep to the share. Throws std::system_error where no process can be had.
  StepServer(const ProcessShare& share, const ChildSignals& signals);

  /// Has the job's text simulated, at its site, which is a validated scenario. To be called when the one before has ended.
  void start(const StepJob& job);
  /// Tells whether it has ended, which ChildSignals::wait_for_child waits for.
  bool has_ended() const;

  /// What became of the step, and the bytes of the JSON result; empty for a failure.
  struct End {
    StepOutcome outcome;
    std::string json;
  };
  /// Returns how the step ended. To be called once, when it has.
  End end();
  /// Tells whether another step may be started. A server that was killed takes none.
  bool goes_on() const { return goes_on_; }

 private:
  /// What the server waits at until it is given a step.
  class Bell {
   public:
    Bell();
    ~Bell();
    Bell(const Bell&) = delete;
    Bell& operator=(const Bell&) = delete;
    void ring() const;
    void wait() const;

   private:
    int descriptor_;
  };

  std::string started_;
  Stopwatch stopwatch_;
  std::size_t given_ = 0;
  bool goes_on_ = true;
  sim::SharedCounter ended_;
  Bell bell_;
  MemoryFile asked_, output_;
  sim::ChildProcess server_;  ///< the last, so that it ends before what it uses

  [[noreturn]] void serve();
  void simulate_in_child();
};

}  // namespace tandem::studies
