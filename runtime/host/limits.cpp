#include "runtime/host/limits.h"

#include "runtime/base/input_error.h"
#include "runtime/base/memory_limit.h"

namespace tandem {

void refuse_too_many_ranks(std::int64_t ranks, const std::string& file) {
  constexpr std::int64_t most_ranks = 64;
  if (ranks <= most_ranks) return;
  throw InputError({file, 0, 0}, std::to_string(ranks) + " ranks are too many for the host backend; expected at most " +
                                     std::to_string(most_ranks));
}

void refuse_too_many_bytes(const Dag& dag, const std::string& file) {
  const auto most_bytes = static_cast<double>(memory_limit());
  double bytes = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    if (dag.buffers[id].base == id) bytes += 4.0 * static_cast<double>(dag.buffers[id].shape.elements());
  }
  if (bytes <= most_bytes) return;
  throw InputError({file, 0, 0}, "the step's buffers take " + std::to_string(static_cast<std::int64_t>(bytes / 1e9)) +
                                     " GB in fp32; expected a smaller model for the host backend, at most " +
                                     std::to_string(static_cast<std::int64_t>(most_bytes / 1e9)) +
                                     " GB, or a larger --max-memory");
}

void refuse_missing_ranks(const Dag& dag, const std::string& file) {
  const auto lowered = static_cast<std::int64_t>(dag.ranks.size());
  if (lowered == dag.info.gpus) return;
  throw InputError({file, 0, 0}, "holds " + std::to_string(lowered) + " of " + std::to_string(dag.info.gpus) +
                                     " ranks; expected all of them, lowered without --folded");
}

}  // namespace tandem
