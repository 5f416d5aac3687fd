#include "traces/chrome_events.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <functional>
#include <nlohmann/json.hpp>

namespace tandem::traces {
namespace {

constexpr int significant_digits = 6;  // of FLOPs and rates
constexpr std::int64_t ns_per_us = 1000;
constexpr std::int32_t any_tid = 1;    // of what concerns a whole process
constexpr std::int32_t cpu_tid = 100;  // beyond those of streams

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <std::integral Int>
void append_number(std::string& out, Int value) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
}

template <typename... Precision>
void append_number(std::string& out, double value, Precision... precision) {
  std::array<char, 32> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, precision...);
  out.append(digits.data(), end);
}

/// Writes nanoseconds as decimal microseconds, to the last digit: "12.345".
void append_microseconds(std::string& out, std::int64_t ns) {
  append_number(out, ns / ns_per_us);
  const std::int64_t rest = ns % ns_per_us;
  out += '.';
  out += static_cast<char>('0' + rest / 100);
  out += static_cast<char>('0' + rest / 10 % 10);
  out += static_cast<char>('0' + rest % 10);
}

/// Viewers add start and duration as doubles of microseconds, and the sum may come out behind the start of a slice that follows
/// at once. So such a duration is written a picosecond short: "12.344999" for 12345 ns.
void append_duration(std::string& out, std::int64_t ns, bool next_follows_at_once) {
  const bool shorten = next_follows_at_once && ns > 0;
  append_microseconds(out, shorten ? ns - 1 : ns);
  if (shorten) out += "999";
}

void write_metadata(EventStream& stream, std::int32_t pid, std::int32_t tid, std::string_view name,
                    const std::string& arguments) {
  std::string& event = stream.begin("M", pid, tid);
  event += ",\"ts\":0,\"name\":\"";
  event += name;
  event += "\",\"args\":{" + arguments + "}";
  stream.finish();
}

/// "process" or "thread"
void write_named(EventStream& stream, std::int32_t pid, std::int32_t tid, const std::string& what, const std::string& name,
                 std::int32_t sort_index) {
  write_metadata(stream, pid, tid, what + "_name", "\"name\":" + quoted(name));
  write_metadata(stream, pid, tid, what + "_sort_index", "\"sort_index\":" + std::to_string(sort_index));
}

/// For texts that need no escaping: all but the names of tasks and communicators, which are escaped once per file.
struct AppendValue {
  std::string& out;
  void operator()(std::int64_t value) const { append_number(out, value); }
  void operator()(double value) const { append_number(out, value, significant_digits); }
  void operator()(std::string_view value) const {
    out += '"';
    out += value;
    out += '"';
  }
};

template <typename Named, typename NameOf>
std::vector<std::string> quoted_names(const std::vector<Named>& all, NameOf name_of_one) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const Named& one : all) names.push_back(quoted(std::invoke(name_of_one, one)));
  return names;
}

/// Which of NCCL's device functions runs an operation: what is no collective of its own is made of sends and receives, and
/// PyTorch's barrier is an all-reduce.
std::string_view nccl_function(OpKind op) {
  switch (op) {
    case OpKind::all_reduce:
    case OpKind::barrier:
      return "AllReduce";
    case OpKind::all_gather:
      return "AllGather";
    case OpKind::reduce_scatter:
      return "ReduceScatter";
    case OpKind::broadcast:
      return "Broadcast";
    case OpKind::reduce:
      return "Reduce";
    default:
      return "SendRecv";
  }
}

/// The name by which PyTorch records an operation beside its kernel (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
std::string_view recorded_name(OpKind op) {
  switch (op) {
    case OpKind::all_reduce:
      return "allreduce";
    case OpKind::all_gather:
      return "_allgather_base";
    case OpKind::reduce_scatter:
      return "_reduce_scatter_base";
    case OpKind::receive:
      return "recv";
    default:
      return operation(op).name;
  }
}

std::string_view recorded_name(DType type) {
  switch (type) {
    case DType::f32:
      return "Float";
    case DType::bf16:
      return "BFloat16";
    case DType::f16:
      return "Half";
    case DType::f8:
      return "Float8_e4m3fn";
    case DType::f4:
      return "Byte";
    default:
      return "Int";
  }
}

}  // namespace

std::string& EventStream::begin(std::string_view phase, std::int32_t pid, std::int32_t tid) {
  event_ = first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  first_ = false;
  event_ += phase;
  event_ += "\",\"pid\":";
  append_number(event_, pid);
  event_ += ",\"tid\":";
  append_number(event_, tid);
  return event_;
}

void EventStream::finish() {
  event_ += '}';
  out_.write(event_);
}

std::string chrome_head(std::uint32_t rank, std::int64_t world_size) {
  return "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ns\", \"distributedInfo\": {\"rank\": " + std::to_string(rank) +
         ", \"world_size\": " + std::to_string(world_size) + "},\n\"traceEvents\": [";
}

ChromeEvents::ChromeEvents(const TraceSource& source, const SourceSpans& spans, CollectiveNames names, const Launches* launches)
    : source_(source),
      spans_(spans),
      collective_names_(names),
      launches_(launches),
      names_(quoted_names(source.dag->names, std::identity())),
      communicators_(quoted_names(source.dag->communicators, &Communicator::name)),
      annotator_(source) {}

void ChromeEvents::write_rank(const RankTracks& rank, EventStream& stream) {
  const std::int32_t pid = spans_.pid_of(source_.dag->ranks[rank.rank]);
  write_named(stream, pid, any_tid, "process", spans_.process_names[rank.rank], pid);
  if (launches_ != nullptr) write_cpu(rank, pid, stream);
  for (const Track& track : spans_.tracks_of(rank)) {
    const std::int32_t tid = tid_of(track.stream);
    write_named(stream, pid, tid, "thread", std::string(name_of(track.stream)), tid);
    for (std::uint32_t i = 0; i < track.span_count; ++i) write_slice(track.first_span + i, pid, tid, stream);
  }
  write_counters(rank.rank, pid, stream);
}

/// As torch.profiler shows it: an iteration around all, an operator for each task, and in that the call that launches it.
void ChromeEvents::write_cpu(const RankTracks& rank, std::int32_t pid, EventStream& stream) const {
  const std::vector<CpuOperator>& operators = launches_->of(rank);
  if (operators.empty()) return;
  const auto begin = [&](std::string_view category, std::int64_t start_ns, std::int64_t end_ns) -> std::string& {
    std::string& event = stream.begin("X", pid, cpu_tid);
    event += ",\"ts\":";
    append_microseconds(event, start_ns + shift_ns());
    event += ",\"dur\":";
    append_microseconds(event, end_ns - start_ns);
    event.append(",\"cat\":\"").append(category).append("\",\"name\":");
    return event;
  };
  write_named(stream, pid, cpu_tid, "thread", "CPU", cpu_tid);
  std::int64_t end_ns = operators.back().end_ns;
  for (const CpuOperator& one : operators) end_ns = std::max(end_ns, spans_.spans[one.span].end_ns);
  begin("user_annotation", operators.front().start_ns - ns_per_us, end_ns + ns_per_us) += "\"ProfilerStep#1\"";
  stream.finish();
  for (const CpuOperator& one : operators) {
    const TaskId id = spans_.spans[one.span].task;
    const Task& task = source_.dag->tasks[id];
    begin("cpu_op", one.start_ns, one.end_ns) += names_[task.name];
    stream.finish();
    std::string& launch = begin("cuda_runtime", one.launch_start_ns(), one.launch_end_ns());
    launch += task.op == OpKind::copy ? "\"cudaMemcpyAsync\"" : "\"cudaLaunchKernel\"";
    launch += ",\"args\":{\"correlation\":";
    append_number(launch, id + std::uint64_t{1});
    launch += '}';
    stream.finish();
  }
}

/// Kineto's conventions: everything that runs on a device is of category "kernel" and names its stream in the arguments.
void ChromeEvents::write_slice(std::size_t index, std::int32_t pid, std::int32_t tid, EventStream& stream) {
  const Span& span = spans_.spans[index];
  const Task& task = source_.dag->tasks[span.task];
  std::string& event = stream.begin("X", pid, tid);
  event += ",\"ts\":";
  append_microseconds(event, span.start_ns + shift_ns());
  event += ",\"dur\":";
  append_duration(event, span.end_ns - span.start_ns, spans_.followed_at_once(index));
  event += ",\"cat\":\"kernel\",\"name\":";
  append_name(event, task);
  event += ",\"args\":{\"stream\":";
  append_number(event, tid);
  if (launches_ != nullptr) {
    event += ",\"correlation\":";
    append_number(event, span.task + std::uint64_t{1});
  }
  for (const Annotation& annotation : annotator_.of(span.task)) {
    event += ",\"";
    event += name_of(annotation.key);
    event += "\":";
    if (annotation.key == AnnotationKey::communicator) {
      event += communicators_[source_.dag->groups[task.group].communicator];
    } else {
      std::visit(AppendValue{event}, annotation.value);
    }
  }
  if (collective_names_ == CollectiveNames::nccl && task.group != no_id) append_record(event, span.task);
  event += '}';
  stream.finish();
}

/// What PyTorch records of a collective: which, how much, and among whom.
void ChromeEvents::append_record(std::string& event, TaskId id) const {
  const Dag& dag = *source_.dag;
  const Communicator& communicator = dag.communicator_of(dag.tasks[id]);
  event.append(",\"Collective name\":\"").append(recorded_name(dag.tasks[id].op)).append("\"");
  const auto operands = dag.operands_of(id);
  if (!operands.empty()) {
    const Buffer& in = dag.buffers[operands.front().buffer];
    const Buffer& out = dag.buffers[operands.back().buffer];
    event += ",\"In msg nelems\":";
    append_number(event, in.shape.elements());
    event += ",\"Out msg nelems\":";
    append_number(event, out.shape.elements());
    event.append(",\"dtype\":\"").append(recorded_name(in.dtype)).append("\"");
  }
  event += ",\"Group size\":";
  append_number(event, communicator.members.size());
  event.append(",\"Process Group Description\":").append(communicators_[dag.groups[dag.tasks[id].group].communicator]);
  event += ",\"Process Group Ranks\":\"[";
  for (std::size_t i = 0; i < communicator.members.size(); ++i) {
    if (i > 0) event += ", ";
    append_number(event, communicator.members[i]);
  }
  event += "]\"";
}

void ChromeEvents::append_name(std::string& event, const Task& task) const {
  const std::string& name = names_[task.name];
  if (collective_names_ == CollectiveNames::own || !is_communication(task.op) || task.op == OpKind::copy) {
    event += name;
    return;
  }
  event += "\"ncclKernel_";
  event += nccl_function(task.op);
  event += '(';
  event.append(name, 1, name.size() - 2);
  event += ")\"";
}

/// Viewers bind each end of a flow to the slice that encloses its time: the source's start, or where a measured member began
/// before the source, the source's start within the member.
void ChromeEvents::write_flows(EventStream& stream) const {
  for (const Flow& flow : spans_.flows) {
    const std::int64_t leaves_ns = spans_.spans[flow.spans.front()].start_ns;
    for (const std::uint32_t index : flow.spans) {
      const Span& span = spans_.spans[index];
      const Track& track = spans_.tracks[span.track];
      const std::string_view phase = span.flow == FlowRole::source ? "s" : span.flow == FlowRole::step ? "t" : "f";
      std::string& event = stream.begin(phase, spans_.pid_of(source_.dag->ranks[track.rank]), tid_of(track.stream));
      event += ",\"ts\":";
      append_microseconds(event, std::max(span.start_ns, leaves_ns));
      event += ",\"id\":";
      append_number(event, spans_.id_of(flow));
      event += ",\"cat\":\"communication\",\"name\":\"flow\"";
      if (span.flow == FlowRole::last) event += ",\"bp\":\"e\"";
      stream.finish();
    }
  }
}

void ChromeEvents::write_cluster_counters(EventStream& stream) const {
  if (spans_.cluster_pid == 0) return;
  write_named(stream, spans_.cluster_pid, any_tid, "process", spans_.cluster_name, spans_.cluster_pid);
  write_counters(std::nullopt, spans_.cluster_pid, stream);
}

void ChromeEvents::write_counters(std::optional<RankIndex> rank, std::int32_t pid, EventStream& stream) const {
  for (const TraceCounter& counter : source_.counters) {
    if (counter.rank != rank) continue;
    const std::string name = quoted(counter.name), unit = quoted(counter.unit);
    for (const CounterPoint& point : points_of(counter)) {
      std::string& event = stream.begin("C", pid, any_tid);
      event += ",\"ts\":";
      append_microseconds(event, point.time_ns + shift_ns());
      event += ",\"name\":" + name + ",\"args\":{" + unit + ":";
      append_number(event, point.value);
      event += '}';
      stream.finish();
    }
  }
}

}  // namespace tandem::traces
