#pragma once

#include <chrono>

#include "runtime/base/units.h"

namespace tandem {

/// Runs from the moment when it is made.
class Stopwatch {
 public:
  Seconds elapsed() const { return std::chrono::duration<Seconds>(std::chrono::steady_clock::now() - began_).count(); }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace tandem
