#pragma once

#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "runtime/backend.h"
#include "sim/collective_cost.h"
#include "sim/fluid_network.h"
#include "sim/kernel_times.h"
#include "sim/simulate.h"
#include "sim/step_player.h"

namespace tandem {

/// Simulates: kernels last their modelled time, collectives are flows on a SimGrid network, one each or one for each of their
/// messages. One per process (see `FluidNetwork`).
///
/// What ends at one date is reported in a fixed order, first the kernels and then the flows, each by task id: equal DAGs give
/// equal timelines.
class SimGridBackend final : public Backend {
 public:
  explicit SimGridBackend(Collectives collectives = Collectives::fluid, const Speedup& speedup = {})
      : collectives_(collectives), speedup_(speedup) {}
  void prepare(const Dag& dag, Completions& completions) override;
  void start(std::span<const TaskId> unit) override;
  void drive() override;

 private:
  struct Ending {
    Seconds date = 0;
    TaskId task = 0;
    bool operator>(const Ending& other) const { return date != other.date ? date > other.date : task > other.task; }
  };

  Collectives collectives_;
  Speedup speedup_;
  const Dag* dag_ = nullptr;
  Completions* completions_ = nullptr;
  std::optional<CollectiveCosts> costs_;
  std::optional<KernelTimes> kernel_times_;
  std::optional<FluidNetwork> network_;
  std::optional<StepPlayer> steps_;  ///< with collectives in steps: all flows are its messages
  std::vector<Seconds> start_;       ///< by task
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
  /// The date of the ending that is reported. A kernel's end is exactly its start plus its duration; SimGrid's clock is a sum of
  /// steps, and owes us no exactness.
  Seconds now_ = 0;

  void report_endings();
  void wake_for_next();
};

}  // namespace tandem
