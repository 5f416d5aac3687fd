#pragma once

#include <cstddef>
#include <functional>

namespace tandem::studies {

/// How far a run of many simulations is.
struct RunProgress {
  std::size_t total = 0;
  std::size_t done_before = 0;  ///< taken from earlier results
  std::size_t done = 0;         ///< `done_before` included
  std::size_t running = 0;
};
using OnRunProgress = std::function<void(const RunProgress&)>;

}  // namespace tandem::studies
