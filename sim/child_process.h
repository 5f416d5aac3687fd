#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "runtime/base/units.h"

namespace tandem::sim {

/// Memory that children forked later share with this process. Zero at first.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::span<std::byte> bytes() { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// Numbers in such memory.
template <typename T>
class Shared {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  explicit Shared(std::size_t count) : memory_(count * sizeof(T)) {}
  std::span<T> values() { return {reinterpret_cast<T*>(memory_.bytes().data()), memory_.bytes().size() / sizeof(T)}; }

 private:
  SharedMemory memory_;
};
using SharedDoubles = Shared<double>;

/// A counter that a child forked later sets and its parent reads meanwhile. 0 at first.
class SharedCounter {
 public:
  using Value = std::atomic<std::size_t>;
  static_assert(Value::is_always_lock_free);  // else its lock would not be shared

  SharedCounter();
  ~SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;

  Value& value() const { return *value_; }

 private:
  Value* value_;
};

/// Runs `work` in a forked child. Only shared memory made before comes back. The child ends without the parent's exit handlers,
/// and dies with the calling thread, or with this object if nobody waits for it. It may take so much memory: where nobody says
/// how much, what memory_limit.h says.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& work, std::optional<Bytes> memory = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// How the child ended, which the caller judges.
  struct End {
    int status = 0;        ///< as waitpid(2) gives it
    std::string sentence;  ///< of the exception that `work` threw; empty where it threw none
    Bytes peak_rss = 0;

    /// Returns why the child failed, in a sentence that calls it `process`: "its process was killed by signal 9 (Killed), ..";
    /// empty where it did not.
    std::string failure(const std::string& process) const;
  };
  /// Tells whether `join` and `wait` would return at once.
  bool has_ended() const;
  /// Waits until the child has ended; to be called once. `meanwhile` is called in the parent a hundred times a second.
  End join(const std::function<void()>& meanwhile = {});
  /// Does the same and returns the child's peak resident memory. Throws std::runtime_error with the sentence of the exception
  /// that `work` threw, or with the way the child died.
  Bytes wait(const std::function<void()>& meanwhile = {});

 private:
  class SharedSentence;
  std::unique_ptr<SharedSentence> sentence_;  ///< that the child died with
  pid_t child_ = 0;                           ///< 0: ended

  [[noreturn]] void be_the_child(pid_t parent, const std::function<void()>& work, std::optional<Bytes> memory);
};

/// Does `work` with the numbers from 0 on, `jobs` at a time, each in a child of its own. `ended` is told in the parent, in their
/// order, and of each number before the one that is higher by `jobs` begins. Throws as `wait` does.
void run_in_children(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& work,
                     const std::function<void(std::size_t)>& ended = {});

inline Bytes run_in_child(const std::function<void()>& work, const std::function<void()>& meanwhile = {}) {
  return ChildProcess(work).wait(meanwhile);
}

}  // namespace tandem::sim
