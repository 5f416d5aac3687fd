#include "studies/step/relieved_flows.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collective_cost.h"
#include "sim/fluid_network.h"

namespace tandem::studies {
namespace {

using scenarios::Slot;
using scenarios::slot_count;
using sim::CollectiveCost;

constexpr double rounding = 1e-9;

/// What of a flow decides on its rate.
struct Flow {
  CommunicatorId communicator = 0;
  std::uint32_t path = 0;
  BytesPerSecond limit = 0;
  auto operator<=>(const Flow&) const = default;
};

/// Max-min fair rates: all rise together, until the links of some are full or their own limit is reached.
std::vector<double> fair_rates(const std::vector<Flow>& flows, const World& world) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  std::map<LinkId, std::pair<double, double>> links;  // what is left of the capacity, the multiplicities of those that rise
  const auto crossings_of = [&](const Flow& flow) -> const std::vector<Crossing>& {
    return world.communicators[flow.communicator].layout.paths[flow.path].crossings;
  };
  for (const Flow& flow : flows)
    for (const Crossing& crossing : crossings_of(flow))
      links.try_emplace(crossing.link, world.links[crossing.link].capacity, 0).first->second.second += crossing.multiplicity;
  std::vector<double> rates(flows.size(), infinite);
  for (std::size_t rising = flows.size(); rising > 0;) {
    double level = infinite;
    for (const auto& [link, left] : links)
      if (left.second > 0) level = std::min(level, left.first / left.second);
    for (std::size_t i = 0; i < flows.size(); ++i)
      if (rates[i] == infinite && flows[i].limit > 0) level = std::min(level, flows[i].limit);
    if (level == infinite) return rates;
    std::set<LinkId> full;
    for (const auto& [link, left] : links)
      if (left.second > 0 && left.first / left.second <= level * (1 + rounding)) full.insert(link);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (rates[i] != infinite) continue;
      const std::vector<Crossing>& crossings = crossings_of(flows[i]);
      const bool held = (flows[i].limit > 0 && flows[i].limit <= level * (1 + rounding)) ||
                        std::ranges::any_of(crossings, [&](const Crossing& c) { return full.contains(c.link); });
      if (!held) continue;
      rates[i] = level;
      --rising;
      for (const Crossing& crossing : crossings) {
        auto& left = links.at(crossing.link);
        left.first -= level * crossing.multiplicity;
        left.second -= crossing.multiplicity;
      }
    }
  }
  return rates;
}

bool is_tree(const Communicator& communicator, std::uint32_t path) {
  const Algorithm algorithm = communicator.layout.paths[path].algorithm;
  return algorithm == Algorithm::tree || algorithm == Algorithm::nvls_tree;
}

bool receives(Slot slot) {
  switch (slot) {
    case Slot::receive_tensor:
    case Slot::receive_context:
    case Slot::receive_forward:
    case Slot::receive_backward:
    case Slot::receive_forward_descending:
    case Slot::receive_backward_descending:
      return true;
    default:
      return false;
  }
}

/// A class of ranks in the exact fold, and a task of the class that stands for it in the even one.
using RankTask = std::pair<RankIndex, TaskId>;

class Relief {
 public:
  Relief(const World& exact, const World& even, const Dag& dag, const Timeline& timeline)
      : exact_(exact), even_(even), dag_(dag), timeline_(timeline), shortest_(rounding * 1e-3 * timeline.makespan()) {
    exact_ranks_.resize(even.ranks.size());
    exact_communicators_.resize(even.communicators.size());
    for (RankIndex rank = 0; rank < exact.ranks.size(); ++rank) {
      const RankIndex alike = even.class_of[exact.ranks[rank].world_rank];
      exact_ranks_[alike].push_back(rank);
      for (std::size_t slot = 0; slot < slot_count; ++slot) {
        if (const CommunicatorId c = exact.communicator_of[rank][slot]; c != no_id)
          exact_communicators_[even.communicator_of[alike][slot]].insert(c);
      }
    }
  }

  bool is_absorbed() {
    find_spans();
    if (!find_faster()) return false;
    if (faster_.empty()) return true;
    if (!none_needs_the_faster_ones()) return false;
    if (!dag_.software.issues_for_free()) return false;  // what the CPU does earlier is not followed
    follow();
    return std::ranges::all_of(met_, [&](const auto& at) { return waits_for_others(at.first, at.second); }) && ends_as_before();
  }

 private:
  struct Span {
    Flow flow;
    GroupId group = 0;
  };
  struct Event {
    Seconds date = 0;
    bool begins = false;
    std::size_t span = 0;
  };
  using OfGroup = std::pair<GroupId, CommunicatorId>;  ///< as one of the exact communicators does it

  const World &exact_, &even_;
  const Dag& dag_;
  const Timeline& timeline_;
  const Seconds shortest_;                                     ///< of the times between two events that count
  std::vector<std::vector<RankIndex>> exact_ranks_;            ///< by class of the even fold
  std::vector<std::set<CommunicatorId>> exact_communicators_;  ///< by class of the even fold
  std::vector<Span> spans_;
  std::vector<Event> events_;
  std::vector<std::vector<TaskId>> predecessors_;  ///< by task
  std::set<OfGroup> faster_;
  std::set<RankTask> early_;
  std::map<GroupId, std::set<CommunicatorId>> met_;

  /// A flow of the even fold, and a communicator of the exact one that it stands for.
  using ExactFlow = std::pair<Flow, CommunicatorId>;

  /// Works out the rates of what the flows stand for, but for `without`. Returns those that differ from the even fold's, and by
  /// how much.
  std::vector<std::pair<ExactFlow, double>> differences(const std::vector<Flow>& flows,
                                                        const std::set<ExactFlow>& without) const {
    const std::vector<double> expected = fair_rates(flows, even_);
    std::vector<Flow> exact;
    std::vector<std::size_t> alike;  // index among `flows`
    for (std::size_t i = 0; i < flows.size(); ++i) {
      for (const CommunicatorId c : exact_communicators_[flows[i].communicator]) {
        if (without.contains({flows[i], c})) continue;
        exact.push_back({c, flows[i].path, flows[i].limit});
        alike.push_back(i);
      }
    }
    const std::vector<double> rates = fair_rates(exact, exact_);
    std::vector<std::pair<ExactFlow, double>> found;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double of_even = expected[alike[i]];
      if (rates[i] == of_even || std::abs(rates[i] - of_even) <= rounding * of_even) continue;
      found.push_back({{flows[alike[i]], exact[i].communicator}, rates[i] - of_even});
    }
    return found;
  }

  void find_spans() {
    sim::CollectiveCosts costs(dag_);
    for (GroupId group = 0; group < dag_.groups.size(); ++group) {
      const TaskId first = dag_.members_of(group).front();
      const CollectiveCost& cost = costs.of(dag_.tasks[first]);
      const CommunicatorId communicator = dag_.groups[group].communicator;
      const Seconds begin = timeline_.start[first] + cost.latency, end = timeline_.end[first];
      if (!sim::FluidNetwork::is_flow(cost, dag_.communicators[communicator].layout) || begin >= end) continue;
      events_.push_back({begin, true, spans_.size()});
      events_.push_back({end, false, spans_.size()});
      spans_.push_back({{communicator, cost.paths, cost.rate_limit}, group});
    }
    std::ranges::sort(events_, {}, [](const Event& e) { return std::tuple(e.date, e.begins, e.span); });
  }

  /// Calls `visit` with the flows in the air, sorted, for each time between events; it returns whether to go on.
  template <typename Visit>
  bool at_each_time(const Visit& visit) const {
    std::set<std::pair<Flow, GroupId>> active;
    for (std::size_t i = 0; i + 1 < events_.size(); ++i) {
      const Span& span = spans_[events_[i].span];
      if (events_[i].begins)
        active.emplace(span.flow, span.group);
      else
        active.erase({span.flow, span.group});
      if (!active.empty() && events_[i + 1].date - events_[i].date > shortest_ && !visit(active)) return false;
    }
    return true;
  }

  static std::vector<Flow> flows_of(const std::set<std::pair<Flow, GroupId>>& active) {
    std::vector<Flow> flows;
    for (const auto& [flow, group] : active) flows.push_back(flow);
    return flows;
  }

  /// Returns whether, while trees run, flows are faster at most.
  bool find_faster() {
    std::map<std::vector<Flow>, std::vector<std::pair<ExactFlow, double>>> known;
    return at_each_time([&](const std::set<std::pair<Flow, GroupId>>& active) {
      const bool trees = std::ranges::any_of(
          active, [&](const auto& a) { return is_tree(dag_.communicators[a.first.communicator], a.first.path); });
      if (!trees) return true;
      const auto [found, is_new] = known.try_emplace(flows_of(active));
      if (is_new) found->second = differences(found->first, {});
      for (const auto& [exact, difference] : found->second) {
        if (difference < 0) return false;
        for (const auto& [flow, group] : active)
          if (flow == exact.first) faster_.emplace(group, exact.second);
      }
      return true;
    });
  }

  /// Returns whether all others keep their rates when the faster ones have ended.
  bool none_needs_the_faster_ones() const {
    std::map<std::pair<std::vector<Flow>, std::set<ExactFlow>>, bool> known;
    return at_each_time([&](const std::set<std::pair<Flow, GroupId>>& active) {
      std::set<ExactFlow> ended;
      for (const auto& [flow, group] : active)
        for (auto at = faster_.lower_bound({group, 0}); at != faster_.end() && at->first == group; ++at)
          ended.emplace(flow, at->second);
      if (ended.empty()) return true;
      const auto [found, is_new] = known.try_emplace({flows_of(active), ended});
      if (is_new) found->second = differences(found->first.first, ended).empty();
      return found->second;
    });
  }

  /// Returns the classes of the exact fold that do a communication's task by this communicator.
  std::vector<RankIndex> ranks_of(TaskId id, CommunicatorId communicator) const {
    const Task& task = dag_.tasks[id];
    const CommunicatorId alike = dag_.groups[task.group].communicator;
    std::vector<RankIndex> found;
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      if (even_.communicator_of[task.rank][slot] != alike || receives(static_cast<Slot>(slot)) != (task.op == OpKind::receive))
        continue;
      for (const RankIndex rank : exact_ranks_[task.rank])
        if (exact_.communicator_of[rank][slot] == communicator) found.push_back(rank);
    }
    return found;
  }

  CommunicatorId communicator_of(RankIndex rank, TaskId id) const {
    for (const CommunicatorId c : exact_communicators_[dag_.groups[dag_.tasks[id].group].communicator])
      if (std::ranges::count(ranks_of(id, c), rank) > 0) return c;
    return no_id;
  }

  /// Marks what follows the faster flows on their ranks, up to the next communication: in the order of time, so that it is known
  /// of all that a kernel waits for.
  void follow() {
    list_predecessors();
    std::map<RankIndex, std::vector<TaskId>> kernels;  // of classes of the even fold that have faster flows
    for (const auto& [group, communicator] : faster_)
      for (const TaskId member : dag_.members_of(group)) kernels[dag_.tasks[member].rank];
    for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
      const auto found = kernels.find(dag_.tasks[id].rank);
      if (found != kernels.end() && !is_communication(dag_.tasks[id].op)) found->second.push_back(id);
    }
    std::set<std::tuple<Seconds, TaskId, RankIndex>> open;
    const auto reach_after = [&](RankIndex rank, TaskId id) {
      for (const TaskId next : dag_.graph.successors(id))
        if (dag_.tasks[next].rank == dag_.tasks[id].rank) open.emplace(timeline_.start[next], next, rank);
    };
    for (const auto& [group, communicator] : faster_) {
      for (const TaskId member : dag_.members_of(group)) {
        for (const RankIndex rank : ranks_of(member, communicator)) {
          reach_after(rank, member);
          for (const TaskId beside : kernels.at(dag_.tasks[member].rank))
            if (timeline_.start[beside] < timeline_.end[member] && timeline_.end[beside] > timeline_.start[member] &&
                early_.emplace(rank, beside).second)
              reach_after(rank, beside);
        }
      }
    }
    while (!open.empty()) {
      const auto [start, id, rank] = *open.begin();
      open.erase(open.begin());
      if (early_.contains({rank, id}) || waits_for_the_punctual(rank, id)) continue;
      early_.emplace(rank, id);
      if (is_communication(dag_.tasks[id].op))
        met_[dag_.tasks[id].group].insert(communicator_of(rank, id));
      else
        reach_after(rank, id);
    }
  }

  /// Whether what a task waits for last ends as it did.
  bool waits_for_the_punctual(RankIndex rank, TaskId id) const {
    return std::ranges::any_of(predecessors_[id], [&](TaskId before) {
      return timeline_.end[before] >= timeline_.start[id] - shortest_ && !ends_early(rank, before);
    });
  }

  bool ends_early(RankIndex rank, TaskId id) const {
    const Task& task = dag_.tasks[id];
    if (!is_communication(task.op)) return early_.contains({rank, id});
    return faster_.contains({task.group, communicator_of(rank, id)});
  }

  void list_predecessors() {
    predecessors_.resize(dag_.tasks.size());
    for (TaskId id = 0; id < dag_.tasks.size(); ++id)
      for (const TaskId next : dag_.graph.successors(id)) predecessors_[next].push_back(id);
  }

  /// Whether in each of these communicators one that is not early is the last to arrive.
  bool waits_for_others(GroupId group, const std::set<CommunicatorId>& communicators) const {
    std::vector<TaskId> last;
    for (const TaskId member : dag_.members_of(group))
      if (ready(member) >= timeline_.start[member] - shortest_) last.push_back(member);
    return std::ranges::all_of(communicators, [&](CommunicatorId communicator) {
      return std::ranges::any_of(last, [&](TaskId member) {
        return std::ranges::any_of(ranks_of(member, communicator), [&](RankIndex rank) {
          return !early_.contains({rank, member});
        });
      });
    });
  }

  Seconds ready(TaskId id) const {
    Seconds last = 0;
    for (const TaskId before : predecessors_[id]) last = std::max(last, timeline_.end[before]);
    return last;
  }

  /// Whether some rank still ends with the step.
  bool ends_as_before() const {
    const auto last = static_cast<TaskId>(std::ranges::max_element(timeline_.end) - timeline_.end.begin());
    return std::ranges::any_of(exact_ranks_[dag_.tasks[last].rank], [&](RankIndex rank) {
      return !early_.contains({rank, last});
    });
  }
};

}  // namespace

bool relief_is_absorbed(const World& exact, const World& even, const Dag& dag, const Timeline& timeline) {
  return Relief(exact, even, dag, timeline).is_absorbed();
}

}  // namespace tandem::studies
