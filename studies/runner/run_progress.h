#pragma once

#include <cstddef>
#include <functional>

namespace tandem::studies {

/// How far many simulations are.
struct RunProgress {
  std::size_t total = 0;
  std::size_t done_before = 0;  ///< whose results were there
  std::size_t done = 0;         ///< these included
  std::size_t running = 0;
};
using OnRunProgress = std::function<void(const RunProgress&)>;

}  // namespace tandem::studies
