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
  if (idle_.empty()) idle_.emplace_back(share_of(most_, memory_), signals);
  idle_.front().index = index;
  idle_.front().server.start(job);
  busy_.splice(busy_.end(), idle_, idle_.begin());
}

std::vector<EndedStep> ChildPool::wait(const ChildSignals& signals) {
  constexpr Seconds between_updates = 0.1;
  return wait(signals, between_updates);
}

std::vector<EndedStep> ChildPool::wait(const ChildSignals& signals, Seconds patience) {
  signals.wait_for_child(patience);
  std::vector<EndedStep> ended;
  for (auto slot = busy_.begin(); slot != busy_.end();) {
    const auto next = std::next(slot);
    if (slot->server.has_ended()) {
      StepServer::End end = slot->server.end();
      ended.push_back({slot->index, std::move(end.outcome), std::move(end.json)});
      if (slot->server.goes_on())
        idle_.splice(idle_.begin(), busy_, slot);
      else
        busy_.erase(slot);
    }
    slot = next;
  }
  return ended;
}

}  // namespace tandem::studies
