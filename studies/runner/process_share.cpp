#include "studies/runner/process_share.h"

#include <algorithm>
#include <thread>

#include "runtime/base/parallel.h"

namespace tandem::studies {

ProcessShare share_of(std::size_t processes, Bytes memory) {
  const std::size_t threads = std::thread::hardware_concurrency() / processes;
  return {.memory = memory / static_cast<Bytes>(processes), .threads = std::clamp<std::size_t>(threads, 1, most_threads())};
}

}  // namespace tandem::studies
