#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/progress_watch.h"

namespace tandem {

struct ControlOptions {
  Seconds join_timeout = LaunchLimits{}.join;
  Seconds timeout = LaunchLimits{}.stall;    ///< without progress while others wait
  Seconds silence = LaunchLimits{}.silence;  ///< without a report, or without rank 0's answer to one
  Seconds report_interval = 0.5;
  Seconds handshake = 5;    ///< a connection that has not proven itself so long after it was made is closed
  Seconds last_resort = 8;  ///< a process that still runs so long after a failure is ended, with exit code 1
  /// Names the task of a number given to `progress`. It is called from another thread and must not throw.
  std::function<std::string(std::uint32_t)> task_name = {};
};

/// The limits of a launch.
ControlOptions control_options(const LaunchLimits& limits, std::function<std::string(std::uint32_t)> task_name);

/// What the processes of a run tell each other beside their GPUs' traffic: a star of TCP connections to rank 0. Every process
/// makes one; a run of one process opens no port.
///
/// 1. The operations are collective: every process calls the same ones in the same order, and none returns before all have come.
/// 2. The run fails as a whole: when a process throws (`fail`), dies, falls silent, or makes no progress while others wait, when
///    a digest differs or two processes claim one rank, every process gets the same sentence. It names the rank, its host and
///    the task it was last at. Operations throw it (std::runtime_error), `on_failure` is called with it.
/// 3. No call waits for ever: what the others do not answer ends by 2, also when rank 0 dies.
/// 4. Who connects without proof of the run's secret (handshake.h) is ignored: nothing else that he sends is read. Rank 0 holds
///    such connections for a limited time, and a limited number of them, of which the oldest goes first.
/// 5. Processes of another version of Tandem end the run.
class ControlPlane {
 public:
  /// Joins the others. Throws std::runtime_error when not all come within `join_timeout`, naming the ranks that are missing.
  explicit ControlPlane(const Launch& launch, ControlOptions options = {});
  /// Leaving without `leave` is a failure that the others are told of.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  /// Rank 0's `bytes`, on all.
  std::string broadcast(const std::string& bytes);
  /// Returns on rank 0 the `bytes` of all ranks, by rank, and nothing elsewhere. It is meant for megabytes: rank 0 holds them
  /// all.
  std::vector<std::string> gather(const std::string& bytes);
  void barrier();
  /// Fails unless all have rank 0's digest of `what`, such as "DAG file".
  void agree(const std::string& what, const std::string& digest);
  /// The end of a run without failure; nothing may be called after it.
  void leave();

  /// Tells at which task this process is, and whether that task is `waiting` for other processes. Any thread may call it as often
  /// as it likes: the place is reported now and then, and counts as progress only where it has changed.
  void progress(std::uint32_t task, bool waiting);
  /// Tells that what this process waited for has come: it is where it was, and others may wait for it.
  void waits_no_more();
  /// Ends the run on all processes. Returns when they have been told.
  void fail(const std::string& error);
  std::optional<std::string> failure() const;
  /// Does `work`, then leaves. What it throws ends the run on all processes; thrown on as the sentence that all end with.
  void run(const std::function<void()>& work);
  /// Calls back once, from another thread, when the run fails, or at once when it has failed. An empty function ends that, and
  /// waits for a call that is under way.
  void on_failure(std::function<void(const std::string& sentence)> callback);

 private:
  std::unique_ptr<class Coordinator> coordinator_;  ///< on rank 0
  std::unique_ptr<class Member> member_;            ///< none in a run of one process
};

}  // namespace tandem
