#include "sim/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "runtime/base/fetch_ahead.h"

namespace tandem::sim {
namespace {

/// What a random number for members that are not simulated decides.
enum Purpose : std::uint64_t {
  of_speeds,
  of_meeting
};

double square(double x) { return x * x; }

/// The moments of a standard normal value that is known to be below a bound.
struct Truncated {
  double mean, variance;
};
Truncated normal_below(double bound) {
  const double hazard = std::exp(-square(bound) / 2) / std::sqrt(2 * std::numbers::pi) / normal_share_below(bound);
  return {-hazard, std::max(0.0, 1 - bound * hazard - square(hazard))};
}

/// Returns by how much work that lasts `undisturbed` on average takes longer at the score `z` of a distribution with this
/// deviation.
Seconds excess_of(double z, Seconds deviation, Seconds undisturbed) {
  return undisturbed > 0 ? undisturbed * (lognormal(deviation / undisturbed, z) - 1) : deviation * z;
}

}  // namespace

double Arrivals::Sum::lasting_variance() const {
  double sum = 0;
  for (const LastingDeviation& one : lasting) sum += square(one.deviation);
  return sum;
}

void Arrivals::Sum::scale_lasting(double factor) {
  for (LastingDeviation& one : lasting) one.deviation *= factor;
}

Arrivals::Arrivals(const Dag& dag, const JitterDraw& draw, const ArrivalPilots& pilots)
    : dag_(dag), draw_(draw), pilots_(pilots), spans_(pilots.plan.spans), tasks_(dag.tasks.size()) {
  if (pilots.are_wanted) excesses_.assign(pilots.plan.first_arrival.back(), std::numeric_limits<double>::quiet_NaN());
}

void Arrivals::await(TaskState& by, const Awaited& awaited) {
  auto place = static_cast<std::uint32_t>(awaited_.size());
  if (free_awaited_.empty()) {
    awaited_.push_back(awaited);
  } else {
    place = free_awaited_.back();
    free_awaited_.pop_back();
    awaited_[place] = awaited;
  }
  (by.first_awaited == no_id ? by.first_awaited : awaited_[by.last_awaited].next) = place;
  by.last_awaited = place;
}

void Arrivals::ended(std::span<const TaskId> unit, Seconds date) {
  for (const TaskId id : unit) {
    fetch_ahead(pilots_.undisturbed.end, id);
    fetch_ahead(pilots_.plan.first_arrival, id);
    const LateHistories::Holder history = std::move(tasks_[id].history);
    Awaited awaited{date, date - pilots_.undisturbed.end[id], pilots_.plan.first_arrival[id], history};
    const std::span<const TaskId> successors = dag_.graph.successors(id);
    for (const TaskId next : successors) {
      TaskState& state = tasks_[next];
      fetch_ahead(tasks_, next);
      fetch_ahead(pilots_.plan.memberships, next);
      state.ready = date;
      state.history = history;
      if (pilots_.plan.memberships[next].first_on_rank != no_id) await(state, awaited);
      ++awaited.arrival;
    }
    if (successors.empty())
      end_of_step_ = std::max(end_of_step_, date + met(id, awaited, whole_class, dag_.ranks[dag_.tasks[id].rank].count));
  }
}

void Arrivals::waited_for_host(TaskId task, Seconds issued) {
  TaskState& state = tasks_[task];
  if (issued <= state.ready) return;
  state.ready = issued;
  state.history = {};
  const Seconds late = std::max(0.0, issued - pilots_.undisturbed.start[task]);
  if (late > 0) histories_.own(state.history).base = late;
  if (is_communication(dag_.tasks[task].op)) await(state, {issued, 0, 0, {}});
}

void Arrivals::compute(TaskId task, Seconds undisturbed, Seconds time) {
  const Variation& variation = draw_.variation();
  const RankIndex rank = dag_.tasks[task].rank;
  const LastingDeviation lasting{rank, variation.rank * undisturbed};
  histories_.own(tasks_[task].history)
      .add({.undisturbed = undisturbed,
            .own = time - undisturbed,
            .variance = square(variation.kernel * undisturbed),
            .rank = rank},
           {&lasting, variation.rank > 0 ? 1U : 0U}, spans_);
}

void Arrivals::communicate(std::span<const TaskId> unit, Seconds undisturbed, Seconds time) {
  const CommunicatorId communicator = dag_.groups[dag_.tasks[unit.front()].group].communicator;
  // Members of different classes are the two stages of a pair; members of one class then belong to different pipelines.
  const bool alike = std::ranges::all_of(unit, [&](TaskId id) { return dag_.tasks[id].rank == dag_.tasks[unit.front()].rank; });
  LateHistories::Holder& history = tasks_[unit.front()].history;
  histories_.own(history).add({.span = alike ? spans_.of(communicator) : RankSpans::one,
                               .undisturbed = undisturbed,
                               .own = time - undisturbed,
                               .variance = square(draw_.variation().communication * undisturbed)},
                              {}, spans_);
  for (const TaskId id : unit.subspan(1)) tasks_[id].history = history;
}

Seconds Arrivals::meet(std::span<const TaskId> unit, Seconds now) {
  const CommunicatorId communicator = dag_.groups[dag_.tasks[unit.front()].group].communicator;
  Seconds start = -1;
  for (const TaskId id : unit) {
    TaskState& state = tasks_[id];
    const ArrivalPlan::Membership& membership = pilots_.plan.memberships[id];
    for (std::uint32_t place = state.first_awaited; place != no_id; place = awaited_[place].next) {
      Awaited& awaited = awaited_[place];
      const Seconds arrival = awaited.end + met(membership.first_on_rank, awaited, communicator, membership.alike);
      awaited.history = {};
      free_awaited_.push_back(place);
      if (arrival <= start) continue;
      start = arrival;
      std::swap(after_, after_last_);
    }
    state.first_awaited = no_id;
  }
  const LateHistories::Holder after = start < 0 ? LateHistories::Holder() : histories_.copy_of(after_last_);
  for (const TaskId id : unit) tasks_[id].history = after;
  return std::max(start, now);
}

/// Leaves the history that members have once they have met in `after_`, and returns how much later than the simulated one the
/// last of them arrives.
Seconds Arrivals::met(TaskId task, const Awaited& awaited, CommunicatorId communicator, std::size_t members) {
  after_.clear();
  if (!awaited.history) return 0;
  const LateHistory& history = *awaited.history;
  if (members < 2) {
    after_ = history;
    return 0;
  }
  after_.base = history.base;
  SpanId span = communicator == whole_class ? RankSpans::one : spans_.of(communicator);
  Seconds in_common = history.base;
  find_apart(history, communicator, members, in_common, span);
  if (apart_.empty()) return 0;

  const auto first = history.lasting(apart_.front().part);
  sum_.part = history.part(apart_.front().part);
  sum_.lasting.assign(first.begin(), first.end());
  Seconds known = sum_.part.own;
  for (std::size_t level = 0; level < apart_.size(); ++level) {
    const bool is_last = level + 1 == apart_.size();
    const std::size_t next = is_last ? 1 : apart_[level + 1].groups;
    if (is_last && sum_.part.is_of_several) {
      // What is late along the path by less than it is against the undisturbed step had time to spare there.
      const Seconds excess = awaited.late - in_common;
      sum_.part.own -= known - excess;
      known = excess;
      if (pilots_.are_wanted) excesses_[awaited.arrival] = sum_.part.own;
      correct(sum_, awaited.arrival);
    }
    if (const std::size_t groups = apart_[level].groups / next; groups > 1) {
      sum_.part.own = std::max(sum_.part.own, latest_excess(sum_, groups - 1, task, communicator, level));
      become_largest(sum_, groups);
    }
    if (is_last) break;
    const LatePart& other = history.part(apart_[level + 1].part);
    add(sum_.part, other);
    add(sum_.lasting, history.lasting(apart_[level + 1].part));
    known += other.own;
  }
  const Seconds delay = std::max(0.0, sum_.part.own - known);
  sum_.part.span = span;
  after_.add(sum_.part, sum_.lasting, spans_);
  return delay;
}

/// Sorts the parts into those that all members have in common, which stay as they are in `after_`, and the others, from the most
/// groups down. `span` comes to be that of all that have met.
void Arrivals::find_apart(const LateHistory& history, CommunicatorId communicator, std::size_t members, Seconds& in_common,
                          SpanId& span) {
  apart_.clear();
  for (std::size_t at = 0; at < history.size(); ++at) {
    const LatePart& part = history.part(at);
    const std::size_t alike = communicator == whole_class ? spans_.size(part.span) : spans_.in_common(part.span, communicator);
    const std::size_t groups = members / std::clamp<std::size_t>(alike, 1, members);
    if (groups < 2) {
      after_.append(part, history.lasting(at));
      in_common += part.own;
      continue;
    }
    span = spans_.joined(span, part.span);
    const auto place = std::ranges::find_if(apart_, [&](const Apart& other) { return other.groups < groups; });
    apart_.insert(place, {groups, at});
  }
}

/// Gives the sum the mean and variance that the pilots found, divided among its shares as before.
void Arrivals::correct(Sum& sum, ArrivalId arrival) const {
  if (pilots_.excess.empty()) return;
  const ArrivalPilots::Moments& found = pilots_.excess[arrival];
  const double all = sum.lasting_variance() + sum.part.variance;
  sum.part.mean = found.mean;
  sum.part.variance = all > 0 ? sum.part.variance / all * found.variance : found.variance;
  if (all > 0) sum.scale_lasting(std::sqrt(found.variance / all));
}

double Arrivals::latest_excess(const Sum& sum, std::size_t others, TaskId task, CommunicatorId communicator, std::size_t level) {
  const LatePart& part = sum.part;
  const double lasting = std::sqrt(sum.lasting_variance()), fresh = std::sqrt(part.variance), all = std::hypot(lasting, fresh);
  if (all == 0) return part.mean;
  const RankIndex rank = dag_.tasks[task].rank;
  const RandomKey key = draw_.peers(dag_.ranks[rank].world_rank, communicator).with(of_meeting).with(task).with(level);
  const auto largest_below_one = [](const RandomKey& of, std::size_t n) {  // U^(1/n), as far as a double can tell it from 1
    return std::min(std::pow(of.uniform(), 1 / static_cast<double>(n)), 1 - 0x1p-53);
  };
  if (lasting == 0) return part.mean + excess_of(normal_quantile(largest_below_one(key, others)), all, part.undisturbed);

  const Scores& speeds = scores(rank, communicator, others);
  double latest = lasting * speeds.slowest.front();  // at least without what is fresh
  if (fresh > 0) {
    latest = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < speeds.slowest.size(); ++i) {
      const RandomKey of_one = key.with(i);
      if (of_one.normal_is_below((latest - lasting * speeds.slowest[i]) / fresh)) continue;
      latest = std::max(latest, lasting * speeds.slowest[i] + fresh * of_one.normal());
    }
    if (const std::size_t rest = others - speeds.slowest.size(); rest > 0) {
      const double deviation = std::sqrt(square(lasting) * speeds.variance_of_rest + square(fresh));
      latest = std::max(latest, lasting * speeds.mean_of_rest + deviation * normal_quantile(largest_below_one(key, rest)));
    }
  }
  return part.mean + excess_of(latest / all, all, part.undisturbed);
}

const Arrivals::Scores& Arrivals::scores(RankIndex rank, CommunicatorId communicator, std::size_t others) {
  const auto [known, is_new] = scores_.try_emplace({rank, communicator, others});
  Scores& scores = known->second;
  const std::size_t count = std::min(others, lasting_scores);
  if (!is_new) return scores;
  const RandomKey key = draw_.peers(dag_.ranks[rank].world_rank, communicator).with(of_speeds).with(others);
  double log_share = 0;  // of the share that lies below: its complement is what is small
  for (std::size_t i = 0; i < count; ++i) {
    log_share += std::log(key.with(i).uniform()) / static_cast<double>(others - i);
    scores.slowest.push_back(-normal_quantile(std::clamp(-std::expm1(log_share), 0x1p-1000, 1 - 0x1p-53)));
  }
  const Truncated rest = normal_below(scores.slowest.back());
  scores.mean_of_rest = rest.mean;
  scores.variance_of_rest = rest.variance;
  return scores;
}

void Arrivals::become_largest(Sum& sum, std::size_t groups) {
  const auto [known, is_new] = largest_.try_emplace(groups);
  if (is_new) known->second = largest_normal(groups);
  const double lasting = sum.lasting_variance(), all = lasting + sum.part.variance;
  if (all == 0) return;
  const double of_largest = square(known->second.deviation), share = lasting / all;
  const double left = (1 - share) / static_cast<double>(groups) + share * of_largest;  // of the variance that lasts
  sum.part.mean += known->second.mean * std::sqrt(all);
  sum.part.variance = of_largest * all - left * lasting;
  sum.scale_lasting(std::sqrt(left));
}

}  // namespace tandem::sim
