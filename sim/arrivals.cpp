#include "sim/arrivals.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

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

double Arrivals::Part::lasting_variance() const {
  double sum = 0;
  for (const auto& [of_rank, deviation] : lasting) sum += square(deviation);
  return sum;
}

void Arrivals::Part::add(const Part& other) {
  undisturbed += other.undisturbed;
  own += other.own;
  mean += other.mean;
  variance += other.variance;
  is_of_several |= other.is_of_several || (rank != no_id && other.rank != no_id && rank != other.rank);
  if (rank == no_id) rank = other.rank;
  for (const auto& [of_rank, deviation] : other.lasting) {
    const auto found = std::ranges::find(lasting, of_rank, &std::pair<RankIndex, Seconds>::first);
    found == lasting.end() ? static_cast<void>(lasting.emplace_back(of_rank, deviation))
                           : static_cast<void>(found->second += deviation);
  }
}

Arrivals::Arrivals(const Dag& dag, const JitterDraw& draw, const ArrivalPilots& pilots)
    : dag_(dag),
      draw_(draw),
      pilots_(pilots),
      first_arrival_(first_arrivals(dag)),
      excesses_(first_arrival_.back(), std::numeric_limits<double>::quiet_NaN()),
      spans_(dag),
      ready_(dag.tasks.size(), 0),
      history_(dag.tasks.size()),
      awaited_(dag.tasks.size()) {
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    double ranks = 0;
    for (const TaskId task : dag.members_of(group)) ranks += dag.ranks[dag.tasks[task].rank].count;
    members_of_world_.push_back(ranks);
  }
}

void Arrivals::ended(std::span<const TaskId> unit, Seconds date) {
  for (const TaskId id : unit) {
    Awaited awaited{date, date - pilots_.undisturbed.end[id], first_arrival_[id], history_[id]};
    for (const TaskId next : dag_.graph.successors(id)) {
      ready_[next] = date;
      history_[next] = history_[id];
      if (is_communication(dag_.tasks[next].op)) awaited_[next].push_back(awaited);
      ++awaited.arrival;
    }
    if (dag_.graph.successors(id).empty()) {
      const Meeting meeting = met(id, awaited, whole_class, dag_.ranks[dag_.tasks[id].rank].count);
      end_of_step_ = std::max(end_of_step_, date + meeting.delay);
    }
  }
  for (const TaskId id : unit) history_[id].reset();
}

void Arrivals::waited_for_host(TaskId task, Seconds issued) {
  if (issued <= ready_[task]) return;
  ready_[task] = issued;
  history_[task].reset();
  const Seconds late = std::max(0.0, issued - pilots_.undisturbed.start[task]);
  if (late > 0) history_[task] = std::make_shared<History>(History{late, {}});
  if (is_communication(dag_.tasks[task].op)) awaited_[task].push_back({issued, 0, 0, nullptr});
}

Arrivals::History& Arrivals::own_history(TaskId task) {
  std::shared_ptr<History>& history = history_[task];
  if (!history) {
    history = std::make_shared<History>();
  } else if (history.use_count() > 1) {
    history = std::make_shared<History>(*history);
  }
  return *history;
}

Arrivals::Part& Arrivals::part(History& history, SpanId span) {
  std::vector<Part>& parts = history.parts;
  const auto place =
      std::ranges::find_if(parts, [&](const Part& p) { return p.span == span || spans_.size(p.span) > spans_.size(span); });
  if (place != parts.end() && place->span == span) return *place;
  return *parts.insert(place, Part{.span = span});
}

void Arrivals::compute(TaskId task, Seconds undisturbed, Seconds time) {
  const Variation& variation = draw_.variation();
  Part kernel{.undisturbed = undisturbed,
              .own = time - undisturbed,
              .variance = square(variation.kernel * undisturbed),
              .rank = dag_.tasks[task].rank};
  if (variation.rank > 0) kernel.lasting.emplace_back(dag_.tasks[task].rank, variation.rank * undisturbed);
  part(own_history(task), RankSpans::one).add(kernel);
}

void Arrivals::communicate(std::span<const TaskId> unit, Seconds undisturbed, Seconds time) {
  const CommunicatorId communicator = dag_.groups[dag_.tasks[unit.front()].group].communicator;
  // Members of different classes are the two stages of a pair; members of one class then belong to different pipelines.
  const bool alike = std::ranges::all_of(unit, [&](TaskId id) { return dag_.tasks[id].rank == dag_.tasks[unit.front()].rank; });
  History& history = own_history(unit.front());
  part(history, alike ? spans_.of(communicator) : RankSpans::one)
      .add({.undisturbed = undisturbed,
            .own = time - undisturbed,
            .variance = square(draw_.variation().communication * undisturbed)});
  for (const TaskId id : unit.subspan(1)) history_[id] = history_[unit.front()];
}

Seconds Arrivals::meet(std::span<const TaskId> unit, Seconds now) {
  const GroupId group = dag_.tasks[unit.front()].group;
  const CommunicatorId communicator = dag_.groups[group].communicator;
  const auto members = static_cast<double>(dag_.communicators[communicator].members.size());
  struct OnRank {
    TaskId first = no_id;
    double tasks = 0;  // a rank of a class that sends to its own class is there as both
  };
  std::map<RankIndex, OnRank> on_ranks;
  for (const TaskId id : unit) {
    OnRank& on_rank = on_ranks.try_emplace(dag_.tasks[id].rank, OnRank{.first = id}).first->second;
    ++on_rank.tasks;
  }
  Seconds start = -1;
  std::shared_ptr<History> after;
  for (const TaskId id : unit) {
    const RankIndex rank = dag_.tasks[id].rank;
    const OnRank& on_rank = on_ranks[rank];
    const double alike = members * on_rank.tasks * dag_.ranks[rank].count / members_of_world_[group];
    for (const Awaited& awaited : awaited_[id]) {
      Meeting meeting = met(on_rank.first, awaited, communicator, static_cast<std::size_t>(std::lround(alike)));
      const Seconds arrival = awaited.end + meeting.delay;
      if (arrival <= start) continue;
      start = arrival;
      after = std::make_shared<History>(std::move(meeting.after));
    }
    std::vector<Awaited>().swap(awaited_[id]);
  }
  for (const TaskId id : unit) history_[id] = after;
  return std::max(start, now);
}

Arrivals::Meeting Arrivals::met(TaskId task, const Awaited& awaited, CommunicatorId communicator, std::size_t members) {
  Meeting meeting;
  if (!awaited.history) return meeting;
  const History& history = *awaited.history;
  if (members < 2) return {0, history};
  meeting.after.base = history.base;
  std::vector<std::pair<std::size_t, const Part*>> apart;  // groups of members that have such a part in common
  SpanId span = communicator == whole_class ? RankSpans::one : spans_.of(communicator);
  Seconds in_common = history.base;
  for (const Part& part : history.parts) {
    const std::size_t alike = communicator == whole_class ? spans_.size(part.span) : spans_.in_common(part.span, communicator);
    const std::size_t groups = members / std::clamp<std::size_t>(alike, 1, members);
    if (groups < 2) {
      meeting.after.parts.push_back(part);
      in_common += part.own;
      continue;
    }
    span = spans_.joined(span, part.span);
    apart.emplace_back(groups, &part);
  }
  if (apart.empty()) return meeting;
  std::ranges::stable_sort(apart, std::greater<>(), &std::pair<std::size_t, const Part*>::first);

  Part largest = *apart.front().second;
  Seconds known = largest.own;
  for (std::size_t level = 0; level < apart.size(); ++level) {
    const bool is_last = level + 1 == apart.size();
    const std::size_t next = is_last ? 1 : apart[level + 1].first;
    if (is_last && largest.is_of_several) {
      // What is late along the path by less than it is against the undisturbed step had time to spare there.
      const Seconds excess = awaited.late - in_common;
      largest.own -= known - excess;
      known = excess;
      excesses_[awaited.arrival] = largest.own;
      correct(largest, awaited.arrival);
    }
    if (const std::size_t groups = apart[level].first / next; groups > 1) {
      largest.own = std::max(largest.own, latest_excess(largest, groups - 1, task, communicator, level));
      largest = largest_of(std::move(largest), groups);
    }
    if (is_last) break;
    largest.add(*apart[level + 1].second);
    known += apart[level + 1].second->own;
  }
  meeting.delay = std::max(0.0, largest.own - known);
  part(meeting.after, span).add(largest);
  return meeting;
}

/// Gives the part the mean and variance that the pilots found, divided among its shares as before.
void Arrivals::correct(Part& part, ArrivalId arrival) const {
  if (pilots_.excess.empty()) return;
  const ArrivalPilots::Moments& found = pilots_.excess[arrival];
  const double all = part.lasting_variance() + part.variance;
  part.mean = found.mean;
  part.variance = all > 0 ? part.variance / all * found.variance : found.variance;
  for (auto& [rank, deviation] : part.lasting) deviation *= std::sqrt(found.variance / all);
}

double Arrivals::latest_excess(const Part& part, std::size_t others, TaskId task, CommunicatorId communicator,
                               std::size_t level) {
  const double lasting = std::sqrt(part.lasting_variance()), fresh = std::sqrt(part.variance), all = std::hypot(lasting, fresh);
  if (all == 0) return part.mean;
  const RankIndex rank = dag_.tasks[task].rank;
  const RandomKey key = draw_.peers(dag_.ranks[rank].world_rank, communicator).with(of_meeting).with(task).with(level);
  const auto largest_below_one = [](const RandomKey& of, std::size_t n) {  // U^(1/n), as far as a double can tell it from 1
    return std::min(std::pow(of.uniform(), 1 / static_cast<double>(n)), 1 - 0x1p-53);
  };
  if (lasting == 0) return part.mean + excess_of(normal_quantile(largest_below_one(key, others)), all, part.undisturbed);

  const std::vector<double>& speeds = scores(rank, communicator, others);
  double latest = lasting * speeds.front();  // at least without what is fresh
  if (fresh > 0) {
    latest = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < speeds.size(); ++i) latest = std::max(latest, lasting * speeds[i] + fresh * key.with(i).normal());
    if (const std::size_t rest = others - speeds.size(); rest > 0) {
      const Truncated below = normal_below(speeds.back());
      const double deviation = std::sqrt(square(lasting) * below.variance + square(fresh));
      latest = std::max(latest, lasting * below.mean + deviation * normal_quantile(largest_below_one(key, rest)));
    }
  }
  return part.mean + excess_of(latest / all, all, part.undisturbed);
}

const std::vector<double>& Arrivals::scores(RankIndex rank, CommunicatorId communicator, std::size_t others) {
  const auto [known, is_new] = scores_.try_emplace({rank, communicator, others}, std::vector<double>());
  std::vector<double>& scores = known->second;
  const std::size_t count = std::min(others, lasting_scores);
  if (!is_new) return scores;
  const RandomKey key = draw_.peers(dag_.ranks[rank].world_rank, communicator).with(of_speeds).with(others);
  double log_share = 0;  // of the share that lies below: its complement is what is small
  for (std::size_t i = 0; i < count; ++i) {
    log_share += std::log(key.with(i).uniform()) / static_cast<double>(others - i);
    scores.push_back(-normal_quantile(std::clamp(-std::expm1(log_share), 0x1p-1000, 1 - 0x1p-53)));
  }
  return scores;
}

Arrivals::Part Arrivals::largest_of(Part part, std::size_t groups) {
  const auto [known, is_new] = largest_.try_emplace(groups);
  if (is_new) known->second = largest_normal(groups);
  const double lasting = part.lasting_variance(), all = lasting + part.variance;
  if (all == 0) return part;
  const double of_largest = square(known->second.deviation), share = lasting / all;
  const double left = (1 - share) / static_cast<double>(groups) + share * of_largest;  // of the variance that lasts
  part.mean += known->second.mean * std::sqrt(all);
  part.variance = of_largest * all - left * lasting;
  for (auto& [rank, deviation] : part.lasting) deviation *= std::sqrt(left);
  return part;
}

}  // namespace tandem::sim
