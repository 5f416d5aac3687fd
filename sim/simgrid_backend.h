#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "runtime/backend.h"
#include "sim/arrivals.h"
#include "sim/collective_cost.h"
#include "sim/contention.h"
#include "sim/fluid_network.h"
#include "sim/host_issue.h"
#include "sim/jitter.h"
#include "sim/lane_dates.h"
#include "sim/lone_flows.h"
#include "sim/simulate.h"
#include "sim/step_costs.h"
#include "sim/step_order.h"
#include "sim/step_player.h"

namespace tandem::sim {

/// What simulations of one DAG have in common, where it was made before; all of it must outlive them.
struct MadeBefore {
  const StepOrder* order = nullptr;
  StepCosts* costs = nullptr;                        ///< at the speed of the simulation
  std::unique_ptr<FluidNetwork>* network = nullptr;  ///< of the one before, on links as fast, or none yet: then it is made
};

/// Simulates a DAG: kernels last their modelled time, collectives are flows on a SimGrid network, one each or one for each of
/// their messages. A process can have one of these, or several one after the other that share a network (see `FluidNetwork`).
///
/// SimGrid has those flows alone that meet others (`LoneFlows`) where these could hold them back (`BindingCrossings`): what has
/// such links to itself ends when its cost says.
///
/// Kernels are slower while their rank communicates (see `Contention`), and end at other dates then. Those of a chain (see
/// `Chains`) that the CPU has dated run in one go, which has one ending; with jitter each has its own.
///
/// In a step with jitter, kernels and collectives take their factors of these times, and collectives begin when the last of their
/// members would be there, those included that a folded DAG does not hold (see `Arrivals`).
///
/// What ends at one date is reported in a fixed order, first the kernels and then the flows, each by task id: equal DAGs give
/// equal timelines.
class SimGridBackend final : public Backend {
 public:
  /// Jitter is for fluid collectives; a folded DAG with jitter needs pilots, which must outlive this. `is_prepared` is called
  /// once, before the clock begins to run: from then on one thread works.
  explicit SimGridBackend(Collectives collectives = Collectives::fluid, const Speedup& speedup = {},
                          const std::optional<JitterDraw>& jitter = {}, const ArrivalPilots* pilots = nullptr,
                          const MadeBefore& made = {}, std::function<void()> is_prepared = {})
      : collectives_(collectives),
        speedup_(speedup),
        jitter_(jitter),
        pilots_(pilots),
        order_(made.order),
        costs_(made.costs),
        network_(made.network != nullptr ? *made.network : own_network_),
        is_prepared_(std::move(is_prepared)) {}
  bool has_one_thread() const override { return true; }
  void prepare(const Dag& dag, Completions& completions) override;
  void start(std::span<const TaskId> unit) override;
  void drive() override;
  /// Returns when the last rank has ended, also of those that a folded DAG does not hold: with jitter, that may be later than all
  /// tasks.
  Seconds end_of_step() const { return arrivals_ ? std::max(now_, arrivals_->end_of_step()) : now_; }
  /// Returns the excesses of a folded DAG with jitter (see `Arrivals`).
  const std::vector<double>& arrival_excesses() const { return arrivals_->excesses(); }

 private:
  struct Beginning {
    Seconds date = 0;
    TaskId task = 0;
    bool operator>(const Beginning& other) const { return date != other.date ? date > other.date : task > other.task; }
  };

  Collectives collectives_;
  Speedup speedup_;
  std::optional<JitterDraw> jitter_;
  const ArrivalPilots* pilots_;
  const StepOrder* order_;
  std::optional<StepOrder> own_order_;
  StepCosts* costs_;
  std::optional<StepCosts> own_costs_;
  const Dag* dag_ = nullptr;
  Completions* completions_ = nullptr;
  std::optional<Contention> contention_;
  std::unique_ptr<FluidNetwork> own_network_;
  std::unique_ptr<FluidNetwork>& network_;
  std::function<void()> is_prepared_;
  std::optional<LoneFlows> lone_;    ///< unless collectives come in steps
  std::optional<StepPlayer> steps_;  ///< with collectives in steps: all flows are its messages
  std::vector<Seconds> start_;       ///< of what communicates, by lane
  std::optional<LaneDates> endings_;
  std::optional<HostIssue> host_;  ///< where the CPU takes time to issue
  std::priority_queue<Beginning, std::vector<Beginning>, std::greater<>>
      beginnings_;                    ///< of what is ready, but issued later, or waits for members that are not simulated
  std::optional<Arrivals> arrivals_;  ///< with jitter, of a folded DAG
  std::vector<Seconds> begins_;       ///< by first task of a unit that has met: when its last member is there
  std::vector<double> rank_factor_;   ///< with jitter, by rank
  std::vector<double> factor_;        ///< with jitter, of what communicates, by lane
  /// The date of the ending that is reported. The end of a kernel that nothing slows is exactly its start plus its duration;
  /// SimGrid's clock is a sum of steps, and owes us no exactness.
  Seconds now_ = 0;

  void begin(TaskId id);
  void begin_kernels(TaskId id);
  double drawn_factor(TaskId id);
  void begin_flow(TaskId id, const CollectiveCost& cost, const Layout& layout);
  bool awaits_members(TaskId id);
  double communication_factor(TaskId id) const;
  std::uint32_t lane_of(TaskId id) const;
  void begin_when_issued(TaskId id);
  void end_at(TaskId task, Seconds date) { endings_->set({date, task, lane_of(task)}); }
  void report(const LaneDates::Date& ending);
  void report_kernels(TaskId last);
  void report_communication(const LaneDates::Date& ending);
  void tell_ended(TaskId id, Seconds start);
  Seconds end_of_flow(Seconds date) const;
  void report_endings();
  void fetch_what_ends_next() const;
  Seconds next_date() const;
  void wake_for_next();
};

}  // namespace tandem::sim
