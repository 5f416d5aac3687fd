#pragma once

#include <sys/types.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace tandem::studies {

/// What --jobs says; 0, its default, means as many as this machine has hardware threads.
std::size_t processes_at_once(int jobs);

/// ISO 8601, in seconds.
std::string utc_now();

/// What a process calls the file of its scenario in its sentences.
inline constexpr const char* worker_scenario = "/proc/self/fd/0";

/// How the process of a point ended, and what it printed.
struct FinishedWorker {
  std::size_t point = 0;
  int status = 0;  ///< as waitpid(2) gives it
  std::string scenario;
  std::string out;
  std::string err;
  std::string started;  ///< UTC, ISO 8601
  Seconds seconds = 0;
};

/// A signal asked the sweep to end.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal);
};

/// Simulates scenarios in processes of their own, `jobs` at once: `tandem simulate` of the binary that is running, even if
/// another one has taken its path since. A process that crashes or is killed takes nothing else with it, and all of them die with
/// the pool and with its process, however that ends.
///
/// While a pool lives, SIGINT, SIGTERM and SIGHUP (unless ignored) make `wait` throw Interrupted instead of ending the process.
class WorkerPool {
 public:
  explicit WorkerPool(std::size_t jobs);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::size_t running() const;
  bool full() const { return running() >= jobs_; }

  /// `scenario` is the text of a scenario's file.
  void start(std::size_t point, const std::string& scenario);
  /// Those that ended since the last call. Waits for one, though not longer than `patience`, and not at all where none runs.
  std::vector<FinishedWorker> wait(Seconds patience);

 private:
  struct Worker;

  std::vector<FinishedWorker> collect();

  std::size_t jobs_;
  std::vector<Worker> workers_;
  sigset_t waited_for_{};
  sigset_t mask_before_{};
  struct sigaction child_action_before_ {};
};

}  // namespace tandem::studies
