#include "studies/recorded/recorded_dag.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/dag/distinct_kernels.h"
#include "sim/collective_cost.h"
#include "studies/recorded/run_order.h"
#include "studies/recorded/survey.h"

namespace tandem::studies {
namespace {

/// Kernels of which the time alone is known. Each stands as a `fill` of so many elements, which the device's profile says takes
/// so long; one that takes no time is fused into another.
class TimeTable {
 public:
  explicit TimeTable(Device& device) : device_(device) {}

  /// The number of elements of the fill that takes `time`.
  std::int64_t elements(Seconds time) {
    const auto [entry, is_new] = known_.try_emplace(time, static_cast<std::int64_t>(known_.size()) + 1);
    if (is_new && time > 0) {
      const OperandType operand{.shape = Shape{entry->second}, .dtype = DType::f32};
      device_.measured.push_back({{OpKind::fill, {operand}, ScaleAttributes{}}, {time, time, time, 1}});
    }
    return entry->second;
  }

 private:
  Device& device_;
  std::map<Seconds, std::int64_t> known_;
};

Stream stream_of(RecordedTask::Kind kind) {
  switch (kind) {
    case RecordedTask::Kind::on_host:
      return Stream::host;
    case RecordedTask::Kind::from_host:
      return Stream::from_host;
    case RecordedTask::Kind::to_host:
      return Stream::to_host;
    default:
      return Stream::compute;
  }
}

/// Those that timelines show exchanges on.
constexpr std::array exchange_streams{Stream::tp,
                                      Stream::dp,
                                      Stream::ep,
                                      Stream::cp,
                                      Stream::tp_receive,
                                      Stream::cp_receive,
                                      Stream::pp_send_forward,
                                      Stream::pp_receive_forward,
                                      Stream::pp_send_backward,
                                      Stream::pp_receive_backward,
                                      Stream::pp_send_forward_descending,
                                      Stream::pp_receive_forward_descending,
                                      Stream::pp_send_backward_descending,
                                      Stream::pp_receive_backward_descending};

/// Where a rank's exchanges run: each of their streams, or groups where these are not told, has one of its own while there are
/// any.
class ExchangeStreams {
 public:
  Stream of(const RecordedTask& task) {
    const std::pair key{task.stream, task.stream < 0 ? task.slot : 0};
    const auto [entry, is_new] = known_.try_emplace(key, known_.size());
    return exchange_streams[entry->second % exchange_streams.size()];
  }

 private:
  std::map<std::pair<std::int64_t, std::uint32_t>, std::size_t> known_;
};

/// Builds the DAG of one rank of each class of `members`, in the order that is given by class of `folded`.
class Builder {
 public:
  Builder(const RecordedRun& run, const ClusterSpec& spec, const Cluster& cluster, const RecordedSurvey& survey,
          const Partition& members)
      : run_(run), survey_(survey), members_(members) {
    dag_.info.scenario = run.name;
    dag_.info.gpus = static_cast<std::int64_t>(run.ranks.size());
    Device& device = dag_.devices.emplace_back(spec.gpu);
    device.measured.clear();
    device.multiprocessors = 0;  // what was recorded is as slow as what ran beside it had made it
    device.host_bandwidth = 0;   // what ran on the host took what was recorded, too
    dag_.attributes = {ScaleAttributes{}, FusedAttributes{}, ReductionAttributes{}};
    add_names();
    add_links(cluster);
  }

  RecordedDag build(const Partition& folded, const std::vector<std::vector<std::uint32_t>>& orders) {
    TimeTable times(dag_.devices.front());
    for (std::uint32_t c = 0; c < members_.ranks.count(); ++c) {
      const std::uint32_t world_rank = members_.ranks.representative[c];
      dag_.ranks.push_back({.world_rank = world_rank, .count = members_.ranks.size[c]});
      add_tasks(c, orders[folded.ranks.of[world_rank]], times);
    }
    finish_groups();
    dag_.graph = TaskGraph(dag_.tasks.size(), edges_);
    number_kernels(dag_);
    return {std::move(dag_), members_.ranks.of};
  }

 private:
  const RecordedRun& run_;
  const RecordedSurvey& survey_;
  const Partition& members_;
  Dag dag_;
  std::vector<TaskGraph::Edge> edges_;
  std::map<std::pair<CommunicatorId, std::uint32_t>, GroupId> groups_;  ///< by call
  std::vector<std::vector<TaskId>> tasks_of_groups_;

  void add_names() {
    constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
    dag_.names.assign(run_.names.begin(), run_.names.begin() + static_cast<std::ptrdiff_t>(std::min(most, run_.names.size())));
    if (run_.names.size() > most) dag_.names.emplace_back("one of many others");
  }

  /// One communicator and link of each class. A link's crossings are those by all communicators of a class together.
  void add_links(const Cluster& cluster) {
    for (const std::uint32_t id : members_.communicators.representative) {
      const RecordedGroup& group = run_.groups[id];
      dag_.communicators.push_back({group.name, group.axis, group.members, survey_.layouts[id]});
      for (Paths& paths : dag_.communicators.back().layout.paths) paths.crossings.clear();
    }
    std::map<std::array<std::uint32_t, 3>, std::uint32_t> times;
    for (const FoldInput::Crossing& crossing : survey_.fold.crossings) {
      const std::uint32_t link = members_.links.of[crossing.link];
      if (members_.links.representative[link] != crossing.link) continue;
      times[{members_.communicators.of[crossing.communicator], crossing.path, link}] += crossing.of_link;
    }
    for (const auto& [key, count] : times) dag_.communicators[key[0]].layout.paths[key[1]].crossings.push_back({key[2], count});
    for (std::uint32_t link = 0; link < members_.links.count(); ++link) {
      dag_.links.push_back(cluster.link(survey_.links[members_.links.representative[link]]));
      dag_.links.back().count = members_.links.size[link];
    }
  }

  void add_tasks(RankIndex rank, const std::vector<std::uint32_t>& order, TimeTable& times) {
    const RecordedRank& recorded = run_.ranks[dag_.ranks[rank].world_rank];
    const std::vector<RecordedTask>& program = run_.programs[recorded.program];
    std::vector<TaskId> id_of(program.size());
    std::map<Seconds, BufferId> buffers;
    std::map<std::pair<Stream, std::uint32_t>, TaskId> last;  // by stream, and group where streams are not told
    ExchangeStreams streams;
    for (const std::uint32_t index : order) {
      const RecordedTask& task = program[index];
      const auto id = static_cast<TaskId>(dag_.tasks.size());
      const bool exchanges = task.kind == RecordedTask::Kind::exchange;
      const Stream stream = exchanges ? streams.of(task) : stream_of(task.kind);
      Task made{.phase = task.phase,
                .stream = stream,
                .rank = rank,
                .first_operand = static_cast<std::uint32_t>(dag_.operands.size()),
                .name = static_cast<std::uint16_t>(std::min<std::size_t>(task.name, dag_.names.size() - 1))};
      exchanges ? make_exchange(made, id, task, recorded.groups[task.slot]) : make_kernel(made, task, times, buffers);
      dag_.tasks.push_back(made);

      std::vector<TaskId> before;
      for (const std::uint32_t earlier : task.after) before.push_back(id_of[earlier]);
      const auto [previous, is_first] = last.try_emplace({stream, exchanges && task.stream < 0 ? task.slot + 1 : 0}, id);
      if (!is_first) before.push_back(std::exchange(previous->second, id));
      std::ranges::sort(before);
      before.erase(std::ranges::unique(before).begin(), before.end());
      for (const TaskId one : before) edges_.emplace_back(one, id);
      id_of[index] = id;
    }
  }

  void make_kernel(Task& task, const RecordedTask& recorded, TimeTable& times, std::map<Seconds, BufferId>& buffers) {
    task.op = OpKind::fill;
    task.attributes = recorded.time > 0 ? 0 : 1;
    const auto [buffer, is_new] = buffers.try_emplace(recorded.time, static_cast<BufferId>(dag_.buffers.size()));
    if (is_new)
      dag_.buffers.push_back({.shape = Shape{times.elements(recorded.time)},
                              .dtype = DType::f32,
                              .kind = BufferKind::input,
                              .rank = task.rank,
                              .base = buffer->second});
    dag_.operands.push_back({buffer->second, static_cast<std::uint32_t>(Access::write)});
  }

  void make_exchange(Task& task, TaskId id, const RecordedTask& recorded, std::uint32_t group) {
    const CommunicatorId communicator = members_.communicators.of[group];
    const auto [entry, is_new] = groups_.try_emplace({communicator, recorded.call}, static_cast<GroupId>(dag_.groups.size()));
    if (is_new) {
      dag_.groups.push_back({communicator, recorded.bytes});
      tasks_of_groups_.emplace_back();
    }
    task.op = recorded.op;
    task.axis = run_.groups[group].axis;
    task.attributes = 2;
    task.group = entry->second;
    tasks_of_groups_[entry->second].push_back(id);
  }

  void finish_groups() {
    dag_.group_begin = {0};
    for (const std::vector<TaskId>& tasks : tasks_of_groups_) {
      dag_.group_tasks.insert(dag_.group_tasks.end(), tasks.begin(), tasks.end());
      dag_.group_begin.push_back(static_cast<std::uint32_t>(dag_.group_tasks.size()));
    }
  }
};

/// The groups whose exchanges choose trees, where all have them.
std::vector<bool> groups_on_trees(const Dag& dag, const Partition& partition, std::size_t groups) {
  std::vector<bool> on_trees(dag.communicators.size(), false);
  CollectiveCosts costs(dag);
  for (const Task& task : dag.tasks) {
    if (task.group == no_id) continue;
    const Layout& layout = dag.communicator_of(task).layout;
    if (is_of_trees(layout.paths[costs.of(task).paths].algorithm)) on_trees[dag.groups[task.group].communicator] = true;
  }
  std::vector<bool> of_group(groups);
  for (std::size_t group = 0; group < groups; ++group) of_group[group] = on_trees[partition.communicators.of[group]];
  return of_group;
}

RecordedDag lay_on(const RecordedRun& run, const ClusterSpec& spec, bool is_folded) {
  const Cluster cluster(spec);
  std::vector<bool> without_trees(run.groups.size(), true);
  for (;;) {
    const RecordedSurvey survey = survey_groups(run, cluster, without_trees);
    const Partition folded = fold(survey.fold);
    const auto orders = run_order(run, folded);
    RecordedDag dag = Builder(run, spec, cluster, survey, folded).build(folded, orders);
    // Trees that are chosen tell ranks apart: the fold is done again with them.
    bool is_complete = true;
    const std::vector<bool> on_trees = groups_on_trees(dag.dag, folded, run.groups.size());
    for (std::size_t group = 0; group < on_trees.size(); ++group) {
      if (!on_trees[group] || !without_trees[group]) continue;
      without_trees[group] = false;
      is_complete = false;
    }
    if (!is_complete) continue;
    if (is_folded) return dag;
    return Builder(run, spec, cluster, survey, unfolded(survey.fold)).build(folded, orders);
  }
}

}  // namespace

RecordedDag lay_recorded(const RecordedRun& run, const ClusterSpec& cluster, bool folded) {
  ClusterSpec spec = cluster;
  spec.gpus = static_cast<std::int64_t>(run.ranks.size());
  try {
    return lay_on(run, spec, folded);
  } catch (const TopologyError& error) {
    throw InputError({run.name, 0, 0}, error.what());
  }
}

}  // namespace tandem::studies
