#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "traces/annotations.h"
#include "traces/spans.h"

namespace tandem {
namespace {

constexpr int significant_digits = 6;  // of FLOPs and rates
constexpr std::int64_t ns_per_us = 1000;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <std::integral Int>
void append_number(std::string& out, Int value) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
}

void append_number(std::string& out, double value) {
  std::array<char, 32> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, significant_digits);
  out.append(digits.data(), end);
}

/// Nanoseconds as decimal microseconds, to the last digit: "12.345".
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

/// The array of events, written one by one out of one string.
class EventStream {
 public:
  explicit EventStream(OutputFile& out) : out_(out) {}

  /// Starts an event: the caller appends members and closes it with `finish`.
  std::string& begin(std::string_view phase, std::int32_t pid, std::int32_t tid) {
    event_ = first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
    first_ = false;
    event_ += phase;
    event_ += "\",\"pid\":";
    append_number(event_, pid);
    event_ += ",\"tid\":";
    append_number(event_, tid);
    return event_;
  }
  void finish() {
    event_ += '}';
    out_.write(event_);
  }

 private:
  OutputFile& out_;
  std::string event_;
  bool first_ = true;
};

void write_metadata(EventStream& stream, std::int32_t pid, std::int32_t tid, std::string_view name,
                    const std::string& arguments) {
  std::string& event = stream.begin("M", pid, tid);
  event += ",\"ts\":0,\"name\":\"";
  event += name;
  event += "\",\"args\":{" + arguments + "}";
  stream.finish();
}

void write_tracks(const TraceSource& source, const SourceSpans& spans, EventStream& stream) {
  RankIndex described = no_id;
  for (const Track& track : spans.tracks) {
    const std::int32_t pid = spans.pid_of(source.dag->ranks[track.rank]);
    const std::int32_t tid = tid_of(track.stream);
    if (track.rank != described) {
      write_metadata(stream, pid, tid, "process_name", "\"name\":" + quoted(spans.process_names[track.rank]));
      write_metadata(stream, pid, tid, "process_sort_index", "\"sort_index\":" + std::to_string(pid));
    }
    described = track.rank;
    write_metadata(stream, pid, tid, "thread_name", "\"name\":" + quoted(std::string(name_of(track.stream))));
    write_metadata(stream, pid, tid, "thread_sort_index", "\"sort_index\":" + std::to_string(tid));
  }
}

/// For texts that need no escaping: all but the names of tasks and communicators, which are escaped once per file.
struct AppendValue {
  std::string& out;
  void operator()(std::int64_t value) const { append_number(out, value); }
  void operator()(double value) const { append_number(out, value); }
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

/// Kineto's conventions: everything that runs on a device is of category "kernel" and names its stream in the arguments.
void write_slices(const TraceSource& source, const SourceSpans& spans, EventStream& stream) {
  const Dag& dag = *source.dag;
  const std::vector<std::string> names = quoted_names(dag.names, std::identity());
  const std::vector<std::string> communicators = quoted_names(dag.communicators, &Communicator::name);
  Annotator annotator(source);
  for (std::size_t i = 0; i < spans.spans.size(); ++i) {
    const Span& span = spans.spans[i];
    const Task& task = dag.tasks[span.task];
    const std::int32_t tid = tid_of(task.stream);
    std::string& event = stream.begin("X", spans.pid_of(dag.ranks[task.rank]), tid);
    event += ",\"ts\":";
    append_microseconds(event, span.start_ns);
    event += ",\"dur\":";
    append_duration(event, span.end_ns - span.start_ns, spans.followed_at_once(i));
    event += ",\"cat\":\"kernel\",\"name\":";
    event += names[task.name];
    event += ",\"args\":{\"stream\":";
    append_number(event, tid);
    for (const Annotation& annotation : annotator.of(span.task)) {
      event += ",\"";
      event += name_of(annotation.key);
      event += "\":";
      if (annotation.key == AnnotationKey::communicator) {
        event += communicators[dag.groups[task.group].communicator];
      } else {
        std::visit(AppendValue{event}, annotation.value);
      }
    }
    event += '}';
    stream.finish();
  }
}

/// Viewers bind each end of a flow to the slice that encloses its time: the source's start, or where a measured member began
/// before the source, the source's start within the member.
void write_flows(const TraceSource& source, const SourceSpans& spans, EventStream& stream) {
  for (const Flow& flow : spans.flows) {
    const std::int64_t leaves_ns = spans.spans[flow.spans.front()].start_ns;
    for (const std::uint32_t index : flow.spans) {
      const Span& span = spans.spans[index];
      const Track& track = spans.tracks[span.track];
      const std::string_view phase = span.flow == FlowRole::source ? "s" : span.flow == FlowRole::step ? "t" : "f";
      std::string& event = stream.begin(phase, spans.pid_of(source.dag->ranks[track.rank]), tid_of(track.stream));
      event += ",\"ts\":";
      append_microseconds(event, std::max(span.start_ns, leaves_ns));
      event += ",\"id\":";
      append_number(event, spans.id_of(flow));
      event += ",\"cat\":\"communication\",\"name\":\"flow\"";
      if (span.flow == FlowRole::last) event += ",\"bp\":\"e\"";
      stream.finish();
    }
  }
}

/// Holistic Trace Analysis finds a trace's rank by the text `"rank": 0`, so the space after the colon counts.
std::string header(const TraceSource& source) {
  const Dag& dag = *source.dag;
  const std::uint32_t rank = dag.ranks.empty() ? 0 : dag.ranks[source.ranks.empty() ? 0 : source.ranks.front()].world_rank;
  return "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ns\", \"distributedInfo\": {\"rank\": " + std::to_string(rank) +
         ", \"world_size\": " + std::to_string(dag.info.gpus) + "},\n\"traceEvents\": [";
}

}  // namespace

void write_chrome(const std::vector<TraceSource>& sources, OutputFile& out) {
  const std::vector<SourceSpans> spans = spans_of(sources);
  out.write(header(sources.front()));
  EventStream stream(out);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    write_tracks(sources[i], spans[i], stream);
    write_slices(sources[i], spans[i], stream);
    write_flows(sources[i], spans[i], stream);
  }
  out.write("\n]}\n");
}

}  // namespace tandem
