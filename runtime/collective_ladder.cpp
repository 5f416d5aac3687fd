#include "runtime/collective_ladder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "runtime/dag/dag_builder.h"

namespace tandem {
namespace {

constexpr std::size_t untimed = 2;

constexpr OpKind among_all[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all};

/// 1, 2, 4, ... and `most`.
std::set<std::size_t> powers_of_two_and(std::size_t most) {
  std::set<std::size_t> numbers{most};
  for (std::size_t number = 1; number < most; number *= 2) numbers.insert(number);
  return numbers;
}

/// Of a rank, the two buffers that all its collectives use.
struct RankBuffers {
  std::int64_t first_elements = 0, second_elements = 0;
  BufferId first = no_id, second = no_id;
};

class LadderBuilder {
 public:
  LadderBuilder(std::span<const MeasuredCollective> collectives, const MachineRanks& machines, DType type)
      : machines_(machines), type_(type) {
    add_ranks();
    for (const MeasuredCollective& collective : collectives) reserve(collective);
    add_buffers();
    for (const MeasuredCollective& collective : collectives) add_row(collective);
  }

  CollectiveLadder ladder() {
    CollectiveLadder ladder{.dag = builder_.finish(), .timed = {}};
    for (const std::vector<TaskId>& row : timed_) {
      std::vector<GroupId>& groups = ladder.timed.emplace_back();
      for (const TaskId task : row) groups.push_back(ladder.dag.tasks[task].group);
    }
    return ladder;
  }

 private:
  const MachineRanks& machines_;
  DType type_;
  DagBuilder builder_;
  std::vector<RankBuffers> buffers_;        ///< by rank
  std::vector<std::vector<TaskId>> timed_;  ///< by collective: the first member's tasks
  std::map<std::string, CommunicatorId> communicators_;

  void add_ranks() {
    std::size_t ranks = 0;
    for (const std::vector<std::uint32_t>& machine : machines_) ranks += machine.size();
    builder_.dag().devices.emplace_back();
    builder_.dag().info.scenario = "ladder of collectives";
    builder_.dag().info.gpus = static_cast<std::int64_t>(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) builder_.add_rank({.world_rank = rank});
    buffers_.resize(ranks);
  }

  std::vector<std::uint32_t> members_of(const MeasuredCollective& collective) const {
    const auto machines = static_cast<std::size_t>(collective.machines);
    const std::size_t each = machines > 0 ? static_cast<std::size_t>(collective.members) / machines : 0;
    std::vector<std::uint32_t> members;
    for (std::size_t machine = 0; machine < std::min(machines, machines_.size()); ++machine) {
      const std::vector<std::uint32_t>& ranks = machines_[machine];
      members.insert(members.end(), ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(each, ranks.size())));
    }
    if (members.size() < 2 || members.size() != static_cast<std::size_t>(collective.members))
      throw std::logic_error("a collective among more ranks than there are, or among one alone");
    return members;
  }

  std::int64_t elements_of(const MeasuredCollective& collective) const {
    const Bytes granularity = size_of(type_) * (collective.op == OpKind::send ? 1 : collective.members);
    if (collective.bytes < granularity || collective.bytes % granularity != 0)
      throw std::logic_error("a collective whose members' parts are no whole elements");
    return collective.bytes / size_of(type_);
  }

  /// What of its second buffer a member uses beside the vector in its first.
  static std::int64_t elements_of_second(const MeasuredCollective& collective, std::int64_t elements) {
    if (collective.op == OpKind::all_to_all) return elements;
    return collective.op == OpKind::all_gather || collective.op == OpKind::reduce_scatter ? elements / collective.members : 0;
  }

  void reserve(const MeasuredCollective& collective) {
    const std::int64_t elements = elements_of(collective);
    for (const std::uint32_t member : members_of(collective)) {
      RankBuffers& buffers = buffers_[member];
      buffers.first_elements = std::max(buffers.first_elements, elements);
      buffers.second_elements = std::max(buffers.second_elements, elements_of_second(collective, elements));
    }
  }

  void add_buffers() {
    for (RankIndex rank = 0; rank < buffers_.size(); ++rank) {
      RankBuffers& buffers = buffers_[rank];
      const auto buffer = [&](std::int64_t elements) {
        return elements > 0 ? builder_.buffer(rank, BufferKind::input, type_, Shape(elements)) : no_id;
      };
      buffers.first = buffer(buffers.first_elements);
      buffers.second = buffer(buffers.second_elements);
    }
  }

  /// A pair and a communicator of the same two are different ones.
  CommunicatorId communicator(const MeasuredCollective& collective, const std::vector<std::uint32_t>& members, bool pair) {
    const std::string name = std::string(pair ? "pair" : "group") + " of " + std::to_string(collective.members) + " ranks, " +
                             std::to_string(collective.members / collective.machines) + " on each machine";
    const auto [known, is_new] = communicators_.try_emplace(name, no_id);
    if (is_new) known->second = builder_.add_communicator({.name = name, .axis = Axis::dp, .members = members, .layout = {}});
    return known->second;
  }

  void add_row(const MeasuredCollective& collective) {
    const std::vector<std::uint32_t> members = members_of(collective);
    const bool transfer = collective.op == OpKind::send;
    const CommunicatorId of_all = communicator(collective, members, false);
    const CommunicatorId used = transfer ? communicator(collective, members, true) : of_all;
    const std::string name = std::string(operation(collective.op).name) + " of " + std::to_string(collective.bytes) +
                             " bytes in a " + builder_.dag().communicators[used].name;
    const TaskLabels labels{.name = name, .stream = Stream::dp};
    std::vector<TaskId>& row = timed_.emplace_back();
    for (const std::uint32_t member : members) {
      const bool is_first = member == members.front();
      const Call call = call_of(collective, member, is_first);
      for (std::size_t i = 0; i < untimed + timed_in_a_row(collective.bytes); ++i) {
        if (transfer) builder_.barrier(member, of_all, {.name = "barrier", .stream = Stream::dp});
        const TaskId task = builder_.collective(call.op, used, labels, call.in, call.out);
        if (is_first && i >= untimed) row.push_back(task);
      }
    }
  }

  /// What a member passes to `DagBuilder::collective`.
  struct Call {
    OpKind op;
    BufferId in, out;
  };

  Call call_of(const MeasuredCollective& collective, RankIndex rank, bool is_first) {
    const std::int64_t elements = elements_of(collective);
    const std::int64_t beside = elements_of_second(collective, elements);
    const BufferId vector = builder_.view(buffers_[rank].first, 0, Shape(elements));
    const BufferId second = beside > 0 ? builder_.view(buffers_[rank].second, 0, Shape(beside)) : no_id;
    switch (collective.op) {
      case OpKind::all_reduce:
        return {collective.op, vector, vector};
      case OpKind::all_gather:
        return {collective.op, second, vector};
      case OpKind::send:
        return is_first ? Call{OpKind::send, vector, no_id} : Call{OpKind::receive, no_id, vector};
      default:
        return {collective.op, vector, second};
    }
  }
};

}  // namespace

MachineRanks ranks_by_machine(std::span<const std::string> machine_of_rank) {
  MachineRanks machines;
  std::map<std::string, std::size_t> known;
  for (std::uint32_t rank = 0; rank < machine_of_rank.size(); ++rank) {
    const auto [machine, is_new] = known.try_emplace(machine_of_rank[rank], machines.size());
    if (is_new) machines.emplace_back();
    machines[machine->second].push_back(rank);
  }
  return machines;
}

std::vector<MeasuredCollective> collectives_worth_measuring(const MachineRanks& machines, const LadderSizes& sizes) {
  constexpr Bytes least_part = 16;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const std::vector<std::uint32_t>& ranks : machines) fewest = std::min(fewest, ranks.size());
  std::vector<MeasuredCollective> all;
  const auto add = [&](OpKind op, std::size_t each, std::size_t of_machines) {
    const std::size_t members = each * of_machines;
    const Bytes granularity = least_part * static_cast<Bytes>(members);
    for (Bytes bytes = sizes.smallest; bytes <= sizes.largest; bytes *= sizes.factor)
      if (bytes >= granularity)
        all.push_back({.op = op,
                       .members = static_cast<std::int32_t>(members),
                       .machines = static_cast<std::int32_t>(of_machines),
                       .bytes = bytes / granularity * granularity,
                       .timing = {}});
  };
  for (const std::size_t of_machines : powers_of_two_and(machines.size())) {
    for (const std::size_t each : powers_of_two_and(fewest)) {
      if (each * of_machines < 2) continue;
      for (const OpKind op : among_all) add(op, each, of_machines);
      if (each * of_machines == 2) add(OpKind::send, each, of_machines);
    }
  }
  return all;
}

std::size_t timed_in_a_row(Bytes bytes) {
  constexpr Bytes fewest = 4, most = 20, in_all = Bytes{256} << 20;
  return static_cast<std::size_t>(std::clamp(in_all / std::max<Bytes>(bytes, 1), fewest, most));
}

CollectiveLadder make_collective_ladder(std::span<const MeasuredCollective> collectives, const MachineRanks& machines,
                                        DType type) {
  return LadderBuilder(collectives, machines, type).ladder();
}

std::vector<std::vector<Seconds>> samples_of(const CollectiveLadder& ladder, const Timeline& timeline) {
  constexpr Seconds shortest = 1e-9;  // what clocks can tell apart
  std::vector<std::vector<Seconds>> samples;
  for (const std::vector<GroupId>& row : ladder.timed) {
    std::vector<Seconds>& of_row = samples.emplace_back();
    for (const GroupId group : row) {
      Seconds least = std::numeric_limits<Seconds>::infinity();
      for (const TaskId task : ladder.dag.members_of(group))
        if (ladder.dag.tasks[task].op != OpKind::send) least = std::min(least, timeline.duration(task));
      of_row.push_back(std::max(least, shortest));
    }
  }
  return samples;
}

}  // namespace tandem
