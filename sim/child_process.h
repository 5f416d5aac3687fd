#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "runtime/units.h"

namespace tandem {

/// Doubles that a child forked later shares with its parent. Zero at first.
class SharedDoubles {
 public:
  explicit SharedDoubles(std::size_t count);
  ~SharedDoubles();
  SharedDoubles(const SharedDoubles&) = delete;
  SharedDoubles& operator=(const SharedDoubles&) = delete;

  std::span<double> values() { return values_; }

 private:
  std::span<double> values_;
};

/// Runs `work` in a forked child. Only shared memory made before comes back. The child ends without the parent's exit handlers,
/// and dies with the calling thread, or with this object if nobody waits for it.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& work);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Until it has ended; to be called once. Returns the child's peak resident memory.
  /// Throws std::runtime_error with the sentence of the exception that `work` threw, or with the way the child died.
  Bytes wait();

 private:
  class SharedSentence;
  std::unique_ptr<SharedSentence> sentence_;  ///< that the child died with
  pid_t child_ = 0;                           ///< 0: ended

  [[noreturn]] void be_the_child(pid_t parent, const std::function<void()>& work);
};

inline Bytes run_in_child(const std::function<void()>& work) { return ChildProcess(work).wait(); }

}  // namespace tandem
