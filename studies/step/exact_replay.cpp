#include "studies/step/exact_replay.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/analysis/predecessors.h"
#include "sim/collective_cost.h"
#include "sim/host_issue.h"
#include "studies/step/flows_in_air.h"
#include "studies/step/kernels_beside.h"

namespace tandem::studies {
namespace {

/// Of the times between two events that count.
Seconds shortest_of(const Timeline& timeline) { return 1e-13 * timeline.makespan(); }

class Replay {
 public:
  Replay(const World& exact, const World& even, const Dag& dag, const Timeline& timeline)
      : dag_(dag),
        timeline_(timeline),
        shortest_(shortest_of(timeline)),
        units_(exact, even, dag),
        costs_(dag),
        air_(exact, even, units_, dag, timeline, costs_, shortest_),
        on_rank_(exact.ranks.size()),
        even_rank_(exact.ranks.size()) {
    for (RankIndex rank = 0; rank < exact.ranks.size(); ++rank) even_rank_[rank] = even.class_of[exact.ranks[rank].world_rank];
  }

  /// Returns whether all could be followed.
  bool run() {
    while (units_.is_clear() && !has_given_up_) {
      const Seconds date = next_date();
      if (date == never) return true;
      for (now_ = date; next_date() <= date + shortest_ && !has_given_up_;) {
        if (!air_.at_end() && (queue_.empty() || air_.next_date() <= queue_.top().date)) {
          now_ = std::max(now_, air_.next_date());
          change_in_even(air_.advance());
        } else {
          const Event event = queue_.top();
          queue_.pop();
          now_ = std::max(now_, event.date);
          handle(event);
        }
      }
      while (is_changed_ && !has_given_up_) share_links();
    }
    return false;
  }

  RunTimes times() const {
    RunTimes found;
    for (const auto& [unit, taken] : taken_up_) {
      if (taken.end == never) throw std::logic_error("a unit that was taken up never ended");
      for (const ExactTask& task : units_.members_of(unit)) found[task] = {taken.start, taken.end};
    }
    return found;
  }

 private:
  enum class Kind : std::uint8_t {
    starts,
    flows,
    ends,              ///< a unit of communication
    moves_on,          ///< a kernel, which ends or goes on at another speed
    starts_as_before,  ///< a kernel, perhaps beside other communication
    is_due,            ///< to have ended
    is_due_to_start,
    is_watched,  ///< late communication, for the kernels that begin beside it
  };
  struct Event {
    Seconds date = 0;
    Kind kind = Kind::starts;
    ExactUnit unit;
    std::uint32_t version = 0;
    bool operator>(const Event& other) const { return std::tie(date, kind, unit) > std::tie(other.date, other.kind, other.unit); }
  };
  /// A unit that runs at other times than in the even fold.
  struct TakenUp {
    Seconds start = never, end = never;  ///< never: not yet
    // while it flows, or computes
    double left = 0;  ///< bytes by channel, or time alone
    double speed = 0;
    Seconds since = 0, until = never;
    std::uint32_t version = 0;
  };

  const Dag& dag_;
  const Timeline& timeline_;
  const Seconds shortest_;
  const std::size_t most_ = std::max<std::size_t>(4096, dag_.tasks.size() / 64);  ///< units that are taken up
  const ExactUnits units_;
  sim::CollectiveCosts costs_;
  FlowsInAir air_;
  std::optional<KernelsBeside> kernels_;  ///< of the even fold; known, as what follows, once something is taken up
  std::optional<Predecessors> predecessors_;
  std::map<ExactUnit, TakenUp> taken_up_;
  FlowsInAir::Others others_;
  struct OnRank {
    std::vector<ExactUnit> kernels;  ///< that run
    std::vector<std::pair<ExactUnit, TaskId>> communication;
  };
  std::vector<OnRank> on_rank_;  ///< of what was taken up, by rank of the exact fold
  std::vector<RankIndex> even_rank_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  Seconds now_ = 0;
  bool is_changed_ = false;  ///< what is in the air
  bool has_given_up_ = false;

  Seconds next_date() const {
    return std::min(air_.at_end() ? never : air_.next_date(), queue_.empty() ? never : queue_.top().date);
  }

  Seconds even_start(const ExactUnit& unit) const { return timeline_.start[units_.task_of(unit)]; }
  Seconds even_end(const ExactUnit& unit) const { return timeline_.end[units_.task_of(unit)]; }

  void handle(const Event& event) {
    const ExactUnit& unit = event.unit;
    switch (event.kind) {
      case Kind::starts:
        return start(unit);
      case Kind::starts_as_before:
        return slow_down(unit);
      case Kind::is_due_to_start:
        return hold(unit);
      default:
        break;
    }
    TakenUp& taken = taken_up_.at(unit);
    const bool is_outdated = taken.version != event.version;
    if (taken.end != never) return;
    switch (event.kind) {
      case Kind::flows:
        others_.in_the_air.push_back(unit);
        is_changed_ = true;
        return;
      case Kind::ends:
        if (!is_outdated) end(unit, taken);
        return;
      case Kind::moves_on:
        if (!is_outdated) move_on(unit, taken);
        return;
      case Kind::is_due:
        return be_late(unit, taken);
      case Kind::is_watched:
        return watch(unit);
      default:
        return;
    }
  }

  /// From here on a unit is simulated, which does not run yet.
  TakenUp& take_up(const ExactUnit& unit) {
    if (!kernels_) {
      kernels_.emplace(dag_, timeline_, costs_, shortest_);
      predecessors_.emplace(dag_);
    }
    queue_.push({even_end(unit) + 2 * shortest_, Kind::is_due, unit});
    TakenUp& taken = taken_up_[unit];
    has_given_up_ = taken_up_.size() > most_ || !sim::issues_for_free(dag_);
    return taken;
  }

  /// The same for one that runs.
  TakenUp& take_up_since(Seconds start, const ExactUnit& unit) {
    TakenUp& taken = take_up(unit);
    begin(unit, taken, start);
    return taken;
  }

  void begin(const ExactUnit& unit, TakenUp& taken, Seconds start) {
    taken.start = start;
    taken.since = now_;
    for (const ExactTask& member : units_.members_of(unit)) {
      OnRank& rank = on_rank_[member.rank];
      if (unit.is_communication)
        rank.communication.emplace_back(unit, member.task);
      else
        rank.kernels.push_back(unit);
    }
  }

  void change_in_even(const FlowsInAir::Change& change) {
    is_changed_ = true;
    for (auto at = taken_up_.lower_bound({true, change.group, 0}); at != taken_up_.end() && at->first.what == change.group;
         ++at) {
      if (change.begins)
        others_.absent.insert(at->first);
      else
        others_.absent.erase(at->first);
    }
  }

  /// When all that a unit waits for has ended; never while that is open.
  Seconds ready(const ExactUnit& unit) const {
    Seconds last = 0;
    for (const auto& [rank, task] : units_.members_of(unit)) {
      for (const TaskId before : predecessors_->of(task)) {
        const auto taken = taken_up_.find(units_.unit_of({rank, before}));
        last = std::max(last, taken == taken_up_.end() ? timeline_.end[before] : taken->second.end);
      }
    }
    return last;
  }

  bool is_late(const ExactUnit& unit) const { return predecessors_ && ready(unit) > even_start(unit) + 4 * shortest_; }

  /// Starts a unit that may be ready before it was in the even fold, or was held up.
  void start(const ExactUnit& unit) {
    const auto found = taken_up_.find(unit);
    if (found != taken_up_.end() && found->second.start != never) return;
    const Seconds date = ready(unit);
    if (found == taken_up_.end() && date >= even_start(unit) - shortest_) return;
    if (date > now_ + shortest_) {
      if (date != never) queue_.push({date, Kind::starts, unit});
      return;
    }
    TakenUp& taken = found == taken_up_.end() ? take_up(unit) : found->second;
    begin(unit, taken, now_);
    if (!unit.is_communication) {
      taken.left = kernels_->alone(unit.what);
      return work(unit, taken);
    }
    const sim::CollectiveCost& cost = costs_.of(dag_.tasks[units_.task_of(unit)]);
    taken.left = static_cast<double>(cost.bytes_per_channel);
    queue_.push({now_ + cost.latency, air_.is_flow(unit.what) ? Kind::flows : Kind::ends, unit});
    slow_down_beside(unit, even_start(unit));
    if (now_ >= even_end(unit)) watch(unit);
  }

  /// Keeps a unit from starting when it did in the even fold, where something that it waits for is late.
  void hold(const ExactUnit& unit) {
    if (taken_up_.contains(unit) || !is_late(unit)) return;
    take_up(unit);
    if (unit.is_communication) {
      if (air_.is_in_the_air(unit.what)) {
        others_.absent.insert(unit);
        is_changed_ = true;
      }
      slow_down_beside(unit, even_end(unit));
    }
    start(unit);
  }

  /// What waits for a unit that should have ended cannot start as it did.
  void be_late(const ExactUnit& unit, const TakenUp& taken) {
    for (const auto& [rank, task] : units_.members_of(unit))
      for (const TaskId next : dag_.graph.successors(task))
        queue_.push({std::max(now_, timeline_.start[next]), Kind::is_due_to_start, units_.unit_of({rank, next})});
    if (unit.is_communication && taken.start != never) watch(unit);
  }

  /// Looks after the kernels that begin beside communication that should have ended.
  void watch(const ExactUnit& unit) {
    Seconds next = never;
    for (const auto& [rank, task] : units_.members_of(unit)) {
      for (const TaskId kernel : kernels_->kernels(even_rank_[rank], now_, now_)) slow_down({false, kernel, rank});
      next = std::min(next, kernels_->next_kernel(even_rank_[rank], now_));
    }
    if (next != never) queue_.push({next, Kind::is_watched, unit});
  }

  void end(const ExactUnit& unit, TakenUp& taken) {
    taken.end = now_;
    for (const ExactTask& member : units_.members_of(unit)) {
      OnRank& rank = on_rank_[member.rank];
      std::erase(rank.kernels, unit);
      std::erase_if(rank.communication, [&](const auto& running) { return running.first == unit; });
    }
    if (unit.is_communication) {
      is_changed_ |= std::erase(others_.in_the_air, unit) > 0;
      slow_down_beside(unit, even_end(unit));
    }
    for (const auto& [rank, task] : units_.members_of(unit))
      for (const TaskId next : dag_.graph.successors(task)) queue_.push({now_, Kind::starts, units_.unit_of({rank, next})});
  }

  /// Looks after the kernels that run beside a unit of communication, which begins or ends now and not at `otherwise`.
  void slow_down_beside(const ExactUnit& unit, Seconds otherwise) {
    for (const auto& [rank, task] : units_.members_of(unit)) {
      for (const ExactUnit& kernel : std::vector(on_rank_[rank].kernels)) move_on(kernel, taken_up_.at(kernel));
      for (const TaskId kernel : kernels_->kernels(even_rank_[rank], now_, std::max(now_, otherwise))) {
        const ExactUnit of_rank{.is_communication = false, .what = kernel, .where = rank};
        if (timeline_.start[kernel] > now_)
          queue_.push({timeline_.start[kernel], Kind::starts_as_before, of_rank});
        else
          slow_down(of_rank);
      }
    }
  }

  /// Takes up a kernel where what runs beside it is not what was beside it in the even fold.
  void slow_down(const ExactUnit& unit) {
    constexpr double rounding = 1e-12;
    if (taken_up_.contains(unit) || even_end(unit) <= now_ + shortest_) return;
    if (is_late(unit)) return hold(unit);
    const double before = kernels_->slowdown(unit.what, kernels_->communication(even_rank_[unit.where], now_));
    if (std::abs(slowdown(unit) - before) <= rounding * before) return;
    TakenUp& taken = take_up_since(even_start(unit), unit);
    taken.left = kernels_->left_alone(unit.what, now_);
    work(unit, taken);
  }

  double slowdown(const ExactUnit& kernel) const {
    std::vector<TaskId> beside = kernels_->communication(even_rank_[kernel.where], now_);
    std::erase_if(beside, [&](TaskId task) { return taken_up_.contains(units_.unit_of({kernel.where, task})); });
    for (const auto& [unit, task] : on_rank_[kernel.where].communication) beside.push_back(task);
    return kernels_->slowdown(kernel.what, beside);
  }

  void move_on(const ExactUnit& unit, TakenUp& taken) {
    taken.left -= (now_ - taken.since) * taken.speed;
    if (taken.until <= now_ + shortest_) return end(unit, taken);
    work(unit, taken);
  }

  /// A kernel goes on at the speed that what is beside it leaves.
  void work(const ExactUnit& unit, TakenUp& taken) {
    taken.speed = 1 / slowdown(unit);
    taken.since = now_;
    taken.until = now_ + taken.left / taken.speed;
    const Seconds change = kernels_->next_change(even_rank_[unit.where], now_);
    queue_.push({std::min(taken.until, change), Kind::moves_on, unit, ++taken.version});
  }

  /// Gives each flow its rate. What had another one in the even fold is taken up.
  void share_links() {
    is_changed_ = false;
    if (!air_.may_differ(others_)) return;
    const FlowsInAir::Rates rates = air_.rates_with(others_);
    for (std::size_t i = 0; i < others_.in_the_air.size(); ++i)
      flow(others_.in_the_air[i], taken_up_.at(others_.in_the_air[i]), rates.of_others[i]);
    for (const auto& [unit, rate] : rates.unexpected) {
      if (is_late(unit)) {
        hold(unit);
        continue;
      }
      TakenUp& taken = take_up_since(even_start(unit), unit);
      taken.left = air_.bytes_left(unit.what, now_);
      flow(unit, taken, rate);
      others_.absent.insert(unit);
      others_.in_the_air.push_back(unit);
    }
  }

  void flow(const ExactUnit& unit, TakenUp& taken, BytesPerSecond rate) {
    taken.left -= (now_ - taken.since) * taken.speed;
    taken.since = now_;
    if (rate == taken.speed) return;
    taken.speed = rate;
    taken.until = now_ + std::max(0.0, taken.left) / rate;
    queue_.push({taken.until, Kind::ends, unit, ++taken.version});
  }
};

}  // namespace

std::optional<RunTimes> replay_exactly(const World& exact, const World& even, const Dag& dag, const Timeline& timeline) {
  Replay replay(exact, even, dag, timeline);
  if (!replay.run()) return {};
  return replay.times();
}

}  // namespace tandem::studies
