#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <list>

#include "runtime/base/units.h"
#include "sim/child_process.h"
#include "studies/serve/job_kinds.h"
#include "studies/serve/job_stream.h"

namespace tandem::studies {

/// What a job's processes may take.
struct JobLimits {
  Bytes memory = 0;  ///< each of them
  Seconds time = 0;  ///< from its start on
  Seconds time_of_long = 3600;
  std::size_t at_once = 1;  ///< others wait for their turn
  std::size_t long_at_once = 2;
  std::size_t waiting = 64;  ///< what comes when so many wait is refused
  std::size_t input = 0;     ///< bytes of a job's body
};

/// A process without threads, which forks a child for each job: it is warm, so that a child neither loads nor links anything, and
/// what crashes or is killed is the child alone. A child has nothing open but its job's stream, sees no file but those of the
/// site's folder, and ends when its time is over, when nobody waits for its answer, and with this process.
///
/// A job's stream has lines of JSON: {"progress": ...} any number of times, then {"answer": ...} or {"failure": sentence,
/// "code", "file", "line", "column"}.
class Foreman {
 public:
  /// Takes jobs from `inside`, until `helper` ends, which is a child of this process, or a signal asks it to end.
  Foreman(const JobLimits& limits, JobSite site, int inside, pid_t helper);
  ~Foreman();
  Foreman(const Foreman&) = delete;
  Foreman& operator=(const Foreman&) = delete;

  /// Returns the signal that ended it (SIGINT, SIGTERM or SIGHUP), or 0 where the helper ended.
  int run();

 private:
  struct RunningJob;
  JobLimits limits_;
  JobSite site_;
  int inside_;
  pid_t helper_;
  OwnDescriptor signals_;
  std::deque<ArrivedJob> waiting_;
  std::list<RunningJob> running_;

  std::size_t running_long() const;
  void take(ArrivedJob job);
  void start_what_may();
  void end_what_must();
  int signal_that_came();
  int wait_a_moment();
};

}  // namespace tandem::studies
