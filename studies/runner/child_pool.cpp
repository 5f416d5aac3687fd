#include "studies/runner/child_pool.h"

#include <algorithm>
#include <utility>

#include "runtime/base/memory_limit.h"
#include "sim/fluid_network.h"

namespace tandem::studies {

ChildPool::ChildPool(std::size_t most) : most_(std::max<std::size_t>(1, most)), memory_(memory_limit()) {}

void ChildPool::expect(std::size_t steps) { most_ = std::clamp<std::size_t>(steps, 1, most_); }

void ChildPool::start(std::size_t index, const StepJob& job, const ChildSignals& signals) {
  sim::open_simgrid();  // once, for all children
  children_.emplace_back(index, job, share_of(most_, memory_), signals);
}

std::vector<EndedStep> ChildPool::wait(const ChildSignals& signals) {
  constexpr Seconds between_updates = 0.1;
  signals.wait_for_child(between_updates);
  std::vector<EndedStep> ended;
  for (auto child = children_.begin(); child != children_.end();) {
    if (!child->process.has_ended()) {
      ++child;
      continue;
    }
    StepProcess::End end = child->process.end();
    ended.push_back({child->index, std::move(end.outcome), std::move(end.json)});
    child = children_.erase(child);
  }
  return ended;
}

}  // namespace tandem::studies
