#pragma once

#include <csignal>
#include <stdexcept>

#include "runtime/base/units.h"

namespace tandem::studies {

/// A signal asked this process to end.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal);
};

/// While it lives, SIGINT, SIGTERM and SIGHUP (unless ignored) wait for `wait_for_child` instead of ending the process.
class ChildSignals {
 public:
  ChildSignals();
  ~ChildSignals();
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;

  /// Waits until a child ends, though not longer than `patience`. Throws Interrupted where one of the signals arrived.
  void wait_for_child(Seconds patience) const;
  /// Has a forked child, and its own, leave these signals to its parent, which ends it. Who cancels a job sends them to all of
  /// its processes in any order, and a child that died of one would be a step that failed.
  void leave_to_parent() const;

 private:
  sigset_t waited_for_{};
  sigset_t mask_before_{};
  struct sigaction child_action_before_ {};
};

}  // namespace tandem::studies
