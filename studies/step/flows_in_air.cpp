#include "studies/step/flows_in_air.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/fluid_network.h"

namespace tandem::studies {
namespace {

/// When the flows that are in the air as the first tree begins began, the earliest of them. What ended before that is in the way
/// of nothing that a tree changes.
Seconds first_that_matters(const Dag& dag, const Timeline& timeline, sim::CollectiveCosts& costs) {
  std::vector<bool> may_be_tree;
  for (const Communicator& communicator : dag.communicators)
    may_be_tree.push_back(std::ranges::any_of(communicator.layout.paths, is_of_trees, &Paths::algorithm));
  Seconds first_tree = std::numeric_limits<Seconds>::infinity();
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    const CommunicatorId communicator = dag.groups[group].communicator;
    if (!may_be_tree[communicator]) continue;
    const TaskId first = dag.members_of(group).front();
    if (is_of_trees(dag.communicators[communicator].layout.paths[costs.of(dag.tasks[first]).paths].algorithm))
      first_tree = std::min(first_tree, timeline.start[first]);
  }
  Seconds earliest = first_tree;
  for (GroupId group = 0; group < dag.groups.size(); ++group)
    if (const TaskId first = dag.members_of(group).front(); timeline.end[first] >= first_tree)
      earliest = std::min(earliest, timeline.start[first]);
  return earliest;
}

}  // namespace

FlowsInAir::FlowsInAir(const World& exact, const World& even, const ExactUnits& units, const Dag& dag, const Timeline& timeline,
                       sim::CollectiveCosts& costs, Seconds shortest)
    : exact_(exact), even_(even), units_(units), shortest_(shortest), span_of_(dag.groups.size(), no_id) {
  const Seconds earliest = first_that_matters(dag, timeline, costs);
  std::map<SharingFlow, Kind> kinds;
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    const TaskId first = dag.members_of(group).front();
    if (timeline.end[first] < earliest) continue;
    const sim::CollectiveCost& cost = costs.of(dag.tasks[first]);
    const CommunicatorId communicator = dag.groups[group].communicator;
    const Layout& layout = dag.communicators[communicator].layout;
    if (!sim::FluidNetwork::is_flow(cost, layout)) continue;
    const auto [kind, is_new] = kinds.try_emplace({communicator, cost.paths, cost.rate_limit}, kinds_.size());
    if (is_new) {
      kinds_.push_back(kind->first);
      is_tree_.push_back(is_of_trees(layout.paths[cost.paths].algorithm));
    }
    const auto span = static_cast<std::uint32_t>(spans_.size());
    span_of_[group] = span;
    spans_.push_back({kind->second, group, cost.bytes_per_channel});
    const Seconds begin = timeline.start[first] + cost.latency;
    events_.push_back({begin, true, span});
    events_.push_back({std::max(begin, timeline.end[first]), false, span});
  }
  std::ranges::sort(events_, {}, [](const Event& e) { return std::tuple(e.date, !e.begins, e.span); });
  for (std::size_t i = 0; i < events_.size(); ++i)
    if (events_[i].begins) spans_[events_[i].span].begins = i;
  find_who_shares();
}

void FlowsInAir::find_who_shares() {
  std::vector<std::vector<Kind>> of_link(even_.links.size());
  for (Kind kind = 0; kind < kinds_.size(); ++kind)
    for (const Crossing& crossing : even_.communicators[kinds_[kind].communicator].layout.paths[kinds_[kind].path].crossings)
      if (crossing.multiplicity > 0) of_link[crossing.link].push_back(kind);
  shares_.assign(kinds_.size(), std::vector<bool>(kinds_.size(), false));
  for (const std::vector<Kind>& kinds : of_link)
    for (const Kind one : kinds)
      for (const Kind other : kinds) shares_[one][other] = true;
}

FlowsInAir::Change FlowsInAir::advance() {
  const Event& event = events_[next_++];
  const Span& span = spans_[event.span];
  if (event.begins)
    active_.emplace(span.kind, span.group);
  else
    active_.erase({span.kind, span.group});
  if (is_tree_[span.kind]) event.begins ? ++trees_ : --trees_;
  return {span.group, event.begins};
}

bool FlowsInAir::is_in_the_air(GroupId group) const {
  return is_flow(group) && active_.contains({spans_[span_of_[group]].kind, group});
}

std::vector<FlowsInAir::Kind> FlowsInAir::connected(const Active& active, std::vector<Kind> from) const {
  std::vector<Kind> left, found;
  for (const auto& [kind, group] : active) left.push_back(kind);
  while (!from.empty() && !left.empty()) {
    const Kind next = from.back();
    from.pop_back();
    const auto near = std::ranges::partition(left, [&](Kind kind) { return !shares_[next][kind]; });
    for (const Kind kind : near) {
      found.push_back(kind);
      if (from.empty() || from.back() != kind) from.push_back(kind);
    }
    left.erase(near.begin(), left.end());
  }
  std::ranges::sort(found);
  return found;
}

const std::vector<BytesPerSecond>& FlowsInAir::even_rates(const std::vector<Kind>& kinds) {
  const auto [found, is_new] = known_even_.try_emplace(kinds);
  if (is_new) {
    std::vector<SharingFlow> flows;
    for (const Kind kind : kinds) flows.push_back(kinds_[kind]);
    found->second = fair_rates(flows, even_);
  }
  return found->second;
}

FlowsInAir::MixRates FlowsInAir::compute(const Mix& mix) {
  constexpr double rounding = 1e-9;
  const std::vector<BytesPerSecond>& expected = even_rates(mix.even);
  std::vector<std::pair<Kind, CommunicatorId>> absent = mix.absent;
  std::vector<SharingFlow> flows;
  std::vector<std::size_t> alike;  // index among `mix.even`
  const auto add = [&](Kind kind, CommunicatorId communicator) {
    flows.push_back({communicator, kinds_[kind].path, kinds_[kind].limit});
  };
  for (std::size_t i = 0; i < mix.even.size(); ++i) {
    for (const CommunicatorId communicator : units_.communicators_of(kinds_[mix.even[i]].communicator)) {
      const auto found = std::ranges::find(absent, std::pair(mix.even[i], communicator));
      if (found != absent.end()) {
        absent.erase(found);
        continue;
      }
      add(mix.even[i], communicator);
      alike.push_back(i);
    }
  }
  for (const auto& [kind, communicator] : mix.others) add(kind, communicator);
  const std::vector<BytesPerSecond> rates = fair_rates(flows, exact_);
  MixRates found;
  for (std::size_t i = 0; i < alike.size(); ++i) {
    const BytesPerSecond of_even = expected[alike[i]];
    if (rates[i] == of_even || std::abs(rates[i] - of_even) <= rounding * of_even) continue;
    found.unexpected.emplace_back(mix.even[alike[i]], flows[i].communicator, rates[i]);
  }
  found.of_others.assign(rates.begin() + static_cast<std::ptrdiff_t>(alike.size()), rates.end());
  return found;
}

FlowsInAir::Rates FlowsInAir::rates_with(const Others& others) {
  std::vector<Kind> from;
  for (const auto& [kind, group] : active_)
    if (is_tree_[kind]) from.push_back(kind);
  Mix mix;
  for (const ExactUnit& unit : others.absent) {
    mix.absent.emplace_back(kind_of(unit), unit.where);
    from.push_back(kind_of(unit));
  }
  for (const ExactUnit& unit : others.in_the_air) {
    mix.others.emplace_back(kind_of(unit), unit.where);
    from.push_back(kind_of(unit));
  }
  std::ranges::sort(mix.absent);
  mix.even = connected(active_, std::move(from));
  const auto [found, is_new] = known_.try_emplace(mix);
  if (is_new) found->second = compute(mix);
  Rates rates{.of_others = found->second.of_others, .unexpected = {}};
  for (const auto& [kind, communicator, rate] : found->second.unexpected) {
    for (auto at = active_.lower_bound({kind, 0}); at != active_.end() && at->first == kind; ++at) {
      const ExactUnit unit{.is_communication = true, .what = at->second, .where = communicator};
      if (!others.absent.contains(unit)) rates.unexpected.emplace_back(unit, rate);
    }
  }
  return rates;
}

double FlowsInAir::bytes_left(GroupId group, Seconds date) {
  const Span& span = spans_[span_of_[group]];
  auto left = static_cast<double>(span.bytes);
  Active active = active_;
  for (std::size_t i = next_; i-- > span.begins;) {
    if (const Seconds time = date - events_[i].date; time > shortest_) {
      const std::vector<Kind> kinds = connected(active, {span.kind});
      const auto own = std::ranges::lower_bound(kinds, span.kind);
      left -= time * even_rates(kinds)[static_cast<std::size_t>(own - kinds.begin())];
    }
    date = events_[i].date;
    const Span& undone = spans_[events_[i].span];
    if (events_[i].begins)
      active.erase({undone.kind, undone.group});
    else
      active.emplace(undone.kind, undone.group);
  }
  return left;
}

}  // namespace tandem::studies
