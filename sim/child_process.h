#pragma once

#include <cstddef>
#include <functional>
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

/// Runs `work` in a forked child and waits for it; returns the child's peak resident memory. Only shared memory made before comes
/// back. The child ends without the parent's exit handlers, and dies with the calling thread.
/// Throws std::runtime_error with the sentence of the exception that `work` threw, or with the way the child died.
Bytes run_in_child(const std::function<void()>& work);

}  // namespace tandem
