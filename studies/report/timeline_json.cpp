#include "studies/report/timeline_json.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "runtime/base/parallel.h"
#include "scenarios/mesh/pipeline_channels.h"
#include "studies/report/packed_column.h"
#include "studies/report/tick.h"
#include "traces/annotations.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

/// Which operands the task reads and which it writes, as a number.
std::uint32_t accesses_of(const Dag& dag, TaskId id) {
  constexpr std::uint32_t bits = 2;
  static_assert(bits * most_operands < std::numeric_limits<std::uint32_t>::digits);
  std::uint32_t accesses = 1;  // before the first, so that their number counts
  for (const Operand& operand : dag.operands_of(id)) accesses = accesses << bits | operand.access_bits;
  return accesses;
}

/// What kernels of one type have in common. A kernel's number stands for its operation, attributes and device, and the types of
/// its operands.
struct KernelType {
  std::uint16_t name = 0;
  Phase phase = Phase::forward;
  Axis axis = Axis::none;
  std::uint32_t accesses = 0;

  bool operator==(const KernelType&) const = default;
};

/// What communications of one type have in common, as bytes to be compared.
class CommunicationKey {
 public:
  const std::string& of(const Dag& dag, TaskId id) {
    const Task& task = dag.tasks[id];
    bytes_.clear();
    add(task.name, task.phase, task.axis, accesses_of(dag, id));
    add(task.op, task.attributes, dag.ranks[task.rank].device, dag.groups[task.group].bytes);
    for (const Operand& operand : dag.operands_of(id)) {
      const Buffer& buffer = dag.buffers[operand.buffer];
      add(buffer.shape.dims, buffer.shape.rank, buffer.dtype);
    }
    bytes_ += dag.communicator_of(task).name;
    return bytes_;
  }

 private:
  std::string bytes_;

  template <typename... T>
  void add(const T&... values) {
    (bytes_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  }
};

/// The types in the order in which they are first met.
class Types {
 public:
  Types(const Dag& dag, const Timeline& timeline, const BoundOf& bound_of)
      : dag_(dag),
        source_{.title = {}, .dag = &dag, .timeline = &timeline},
        annotator_(source_),
        bound_of_(bound_of),
        of_kernel_(dag.first_of_kernel.size()) {}

  std::uint32_t number_of(TaskId id) {
    const KernelId kernel = dag_.tasks[id].kernel;
    return kernel == no_id ? number_of_communication(id) : number_of_kernel(kernel, id);
  }
  Json take() { return std::move(types_); }

 private:
  const Dag& dag_;
  TraceSource source_;
  Annotator annotator_;
  const BoundOf& bound_of_;
  std::vector<std::vector<std::pair<KernelType, std::uint32_t>>> of_kernel_;  ///< by kernel, the few types it has
  CommunicationKey key_;
  std::unordered_map<std::string, std::uint32_t> of_communication_;
  Json types_ = Json::array();

  std::uint32_t number_of_kernel(KernelId kernel, TaskId id) {
    const Task& task = dag_.tasks[id];
    const KernelType type{.name = task.name, .phase = task.phase, .axis = task.axis, .accesses = accesses_of(dag_, id)};
    auto& known = of_kernel_[kernel];
    const auto found = std::ranges::find(known, type, &std::pair<KernelType, std::uint32_t>::first);
    if (found != known.end()) return found->second;
    return known.emplace_back(type, add(id)).second;
  }

  std::uint32_t number_of_communication(TaskId id) {
    const auto [entry, is_new] = of_communication_.try_emplace(key_.of(dag_, id));
    if (is_new) entry->second = add(id);
    return entry->second;
  }

  std::uint32_t add(TaskId id) {
    types_.push_back(describe(id));
    return static_cast<std::uint32_t>(types_.size() - 1);
  }

  Json describe(TaskId id) {
    const Task& task = dag_.tasks[id];
    std::string operands;
    for (const Annotation& annotation : annotator_.of(id))
      if (annotation.key == AnnotationKey::operands) operands = std::get<std::string_view>(annotation.value);
    const bool communicates = is_communication(task.op);
    const OpCost cost = communicates ? OpCost{} : cost_of(dag_, id);
    Json type{{"name", dag_.name_of_task(id)},
              {"op", operation(task.op).name},
              {"kind", communicates ? "communication" : "kernel"},
              {"phase", name_of(task.phase)},
              {"axis", name_of(task.axis)},
              {"operands", operands},
              {"flops", cost.flops},
              {"bytes", communicates ? dag_.groups[task.group].bytes : cost.bytes},
              {"bound", bound_of_ ? bound_of_(id) : ""}};
    if (communicates) {
      type["communicator"] = dag_.communicator_of(task).name;
      type["ranks"] = dag_.communicator_of(task).members.size();
    }
    return type;
  }
};

using TasksByStream = std::array<std::vector<TaskId>, stream_count>;

/// By rank, the tasks of each stream in the order in which they ran; none of ranks that are not drawn.
std::vector<TasksByStream> tasks_by_stream(const Dag& dag, const Timeline& timeline, const std::vector<DrawnRow>& rows) {
  std::vector<bool> drawn(dag.ranks.size(), false);
  for (const DrawnRow& row : rows) drawn[row.rank] = true;
  std::vector<TasksByStream> tasks(dag.ranks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (drawn[task.rank]) tasks[task.rank][static_cast<std::size_t>(task.stream)].push_back(id);
  }
  const auto date = [&](TaskId id) { return std::pair(timeline.start[id], timeline.end[id]); };
  for (TasksByStream& of_rank : tasks)
    for (std::vector<TaskId>& ids : of_rank)
      if (!std::ranges::is_sorted(ids, {}, date)) std::ranges::stable_sort(ids, {}, date);
  return tasks;
}

/// A stream of a row: how many tasks it has in the columns, and which of them, in their order, happen more than once.
Json stream_json(std::size_t stream, const std::vector<TaskId>& ids, const Timeline& timeline) {
  Json json{{"stream", stream}, {"tasks", ids.size()}};
  const Repeat& repeat = timeline.repeat;
  if (repeat.times == 0) return json;
  const auto from = [&](Seconds date) {
    const auto starts_before = [&](TaskId id) { return timeline.start[id] < date; };
    return std::ranges::partition_point(ids, starts_before) - ids.begin();
  };
  json["repeated"] = {from(repeat.from), from(repeat.to)};
  return json;
}

Json repeat_json(const Repeat& repeat) {
  return {{"times", repeat.times},
          {"length_s", repeat.length()},
          {"micro_batches", repeat.micro_batches},
          {"second_half_from", repeat.second_half_from}};
}

/// What a stage's mirror has in another place.
Json mirror_json(const Dag& dag) {
  Json streams = Json::array();
  const auto add = [&](Stream ascending, Stream descending) {
    streams.push_back({static_cast<std::size_t>(ascending), static_cast<std::size_t>(descending)});
  };
  for (const auto& [ascending, descending] : scenarios::pipeline_channels) {
    add(ascending.send_stream, descending.send_stream);
    add(ascending.receive_stream, descending.receive_stream);
  }
  return {{"micro_batches", dag.info.micro_batches / 2}, {"streams", streams}};
}

/// The place of the row that has a rank's tasks.
std::size_t row_of_rank(const std::vector<DrawnRow>& rows, RankIndex rank, const Dag& dag) {
  const auto has_tasks = [&](const DrawnRow& row) { return row.rank == rank && !row.is_mirror(dag); };
  return static_cast<std::size_t>(std::ranges::find_if(rows, has_tasks) - rows.begin());
}

std::size_t count_of(const std::vector<TasksByStream>& tasks) {
  std::size_t count = 0;
  for (const TasksByStream& of_rank : tasks)
    for (const std::vector<TaskId>& ids : of_rank) count += ids.size();
  return count;
}

struct Columns {
  std::vector<std::uint32_t> gap, duration, type;
  std::vector<std::uint32_t> run;  ///< so many tasks after each other have the same labels
  std::vector<std::int16_t> micro_batch, layer, chunk;

  void reserve(std::size_t tasks) {
    for (std::vector<std::uint32_t>* column : {&gap, &duration, &type}) column->reserve(tasks);
  }

  void add_labels(const Task& task) {
    const auto of_task = static_cast<std::int16_t>(task.micro_batch);
    const bool as_before =
        !run.empty() && micro_batch.back() == of_task && layer.back() == task.layer && chunk.back() == task.chunk;
    if (as_before) {
      ++run.back();
      return;
    }
    run.push_back(1);
    micro_batch.push_back(of_task);
    layer.push_back(task.layer);
    chunk.push_back(task.chunk);
  }

  Json json() const {
    const std::pair<const char*, std::function<std::string()>> columns[] = {{"gap", [&] { return packed(gap); }},
                                                                            {"duration", [&] { return packed(duration); }},
                                                                            {"type", [&] { return packed(type); }},
                                                                            {"run", [&] { return packed(run); }},
                                                                            {"micro_batch", [&] { return packed(micro_batch); }},
                                                                            {"layer", [&] { return packed(layer); }},
                                                                            {"chunk", [&] { return packed(chunk); }}};
    std::array<std::string, std::size(columns)> texts;
    in_parallel(texts.size(), [&](std::size_t i) { texts[i] = columns[i].second(); });
    Json json;
    for (std::size_t i = 0; i < texts.size(); ++i) json[columns[i].first] = std::move(texts[i]);
    return json;
  }
};

}  // namespace

Json timeline_json(const Dag& dag, const Timeline& timeline, const std::vector<DrawnRow>& drawn, const BoundOf& bound_of) {
  const Tick tick(timeline.makespan());
  const auto tasks = tasks_by_stream(dag, timeline, drawn);
  Types types(dag, timeline, bound_of);
  Columns columns;
  columns.reserve(count_of(tasks));
  Json rows = Json::array();
  for (const DrawnRow& row : drawn) {
    rows.push_back({{"stage", row.stage},
                    {"rank", row.world_rank},
                    {"stands_for", row.stands_for},
                    {"name", "rank " + std::to_string(row.world_rank)}});
    if (row.is_mirror(dag)) {
      rows.back()["streams"] = Json::array();
      rows.back()["mirrors"] = row_of_rank(drawn, row.rank, dag);
      continue;
    }
    Json streams = Json::array();
    for (std::size_t stream = 0; stream < stream_count; ++stream) {
      const std::vector<TaskId>& ids = tasks[row.rank][stream];
      if (ids.empty()) continue;
      streams.push_back(stream_json(stream, ids, timeline));
      std::int64_t now = 0;
      for (const TaskId id : ids) {
        const Task& task = dag.tasks[id];
        const std::int64_t start = std::max(now, tick.number_at(timeline.start[id]));
        const std::int64_t end = std::max(start, tick.number_at(timeline.end[id]));
        columns.gap.push_back(static_cast<std::uint32_t>(start - now));
        columns.duration.push_back(static_cast<std::uint32_t>(end - start));
        columns.type.push_back(types.number_of(id));
        columns.add_labels(task);
        now = end;
      }
    }
    rows.back()["streams"] = std::move(streams);
  }
  Json streams = Json::array();
  for (std::size_t s = 0; s < stream_count; ++s) streams.push_back(name_of(static_cast<Stream>(s)));
  Json json{{"tick_s", tick.seconds()}, {"step_s", timeline.makespan()}, {"streams", streams}, {"rows", rows},
            {"types", types.take()},    {"columns", columns.json()}};
  if (timeline.repeat.times > 0) json["repeat"] = repeat_json(timeline.repeat);
  if (std::ranges::any_of(drawn, [&](const DrawnRow& row) { return row.is_mirror(dag); })) json["mirror"] = mirror_json(dag);
  return json;
}

}  // namespace tandem::studies
