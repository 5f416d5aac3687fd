#include <google/protobuf/io/coded_stream.h>

#include <array>
#include <string>

#include "traces/annotations.h"
#include "traces/perfetto.pb.h"
#include "traces/spans.h"

namespace tandem::traces {
namespace {

constexpr std::uint32_t sequence_id = 1;
constexpr char packet_tag = 0x0A;  // field 1 of Trace, length-delimited

constexpr std::string_view communication_category = "communication";
constexpr std::array phases{Phase::forward, Phase::backward_input, Phase::backward_weight, Phase::recompute, Phase::optimizer};

// Interned ids count from 1; 0 means "not set".
constexpr std::uint64_t category_iid(const Task& task) {
  return is_communication(task.op) ? phases.size() + 1 : static_cast<std::uint64_t>(task.phase) + 1;
}
constexpr std::uint64_t annotation_iid(AnnotationKey key) { return static_cast<std::uint64_t>(key) + 1; }

// Tracks are numbered so that a process's own differs from its threads' and its counters'.
constexpr int bits_within_process = 12;
constexpr std::int32_t first_counter = 128;
constexpr std::uint64_t uuid_of(std::int32_t pid, std::int32_t tid = 0) {
  return (static_cast<std::uint64_t>(pid) << bits_within_process) | static_cast<std::uint64_t>(tid);
}
static_assert(stream_count < first_counter);

/// Appends packets to the file, reusing one message and one string.
class PacketStream {
 public:
  explicit PacketStream(OutputFile& out) : out_(out) {}

  /// An empty packet to fill; valid until `append`.
  perfetto::TracePacket& packet() {
    packet_.Clear();
    packet_.set_trusted_packet_sequence_id(sequence_id);
    packet_.set_sequence_flags(perfetto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    return packet_;
  }

  void append() {
    std::array<std::uint8_t, 10> varint;
    const auto length = static_cast<std::uint32_t>(packet_.ByteSizeLong());
    std::uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(length, varint.data());
    bytes_.assign(1, packet_tag);
    bytes_.append(varint.data(), end);
    packet_.AppendToString(&bytes_);
    out_.write(bytes_);
  }

 private:
  OutputFile& out_;
  perfetto::TracePacket packet_;
  std::string bytes_;
};

void intern(google::protobuf::RepeatedPtrField<perfetto::InternedString>& table, std::string_view name) {
  perfetto::InternedString& entry = *table.Add();
  entry.set_iid(static_cast<std::uint64_t>(table.size()));
  entry.set_name(name.data(), name.size());
}

/// Writes the first packet, with every string that later ones refer to. The names of the sources' DAGs follow one another.
void write_strings(const std::vector<TraceSource>& sources, PacketStream& stream) {
  perfetto::TracePacket& packet = stream.packet();
  packet.set_first_packet_on_sequence(true);
  packet.set_sequence_flags(perfetto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  perfetto::InternedData& data = *packet.mutable_interned_data();
  for (const Phase phase : phases) intern(*data.mutable_event_categories(), name_of(phase));
  intern(*data.mutable_event_categories(), communication_category);
  for (const std::string_view name : annotation_names) intern(*data.mutable_debug_annotation_names(), name);
  for (const TraceSource& source : sources) {
    for (const std::string& name : source.dag->names) intern(*data.mutable_event_names(), name);
  }
  stream.append();
}

void write_process(const SourceSpans& spans, const TraceSource& source, RankIndex rank, PacketStream& stream) {
  const std::int32_t pid = spans.pid_of(source.dag->ranks[rank]);
  perfetto::TrackDescriptor& track = *stream.packet().mutable_track_descriptor();
  track.set_uuid(uuid_of(pid));
  track.set_name(spans.process_names[rank]);
  track.set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
  track.set_sibling_order_rank(pid);
  track.mutable_process()->set_pid(pid);
  track.mutable_process()->set_process_name(spans.process_names[rank]);
  track.mutable_process()->set_legacy_sort_index(pid);
  stream.append();
}

void write_thread(std::int32_t pid, Stream of, PacketStream& stream) {
  const std::int32_t tid = tid_of(of);
  const std::string name(name_of(of));
  perfetto::TrackDescriptor& track = *stream.packet().mutable_track_descriptor();
  track.set_uuid(uuid_of(pid, tid));
  track.set_parent_uuid(uuid_of(pid));
  track.set_name(name);
  track.set_sibling_order_rank(tid);
  track.mutable_thread()->set_pid(pid);
  track.mutable_thread()->set_tid(tid);
  track.mutable_thread()->set_thread_name(name);
  track.mutable_thread()->set_legacy_sort_index(tid);
  stream.append();
}

/// Writes the counters of `rank`, or of the cluster, as tracks below that of `pid`.
void write_counters(const TraceSource& source, std::optional<RankIndex> rank, std::int32_t pid, PacketStream& stream) {
  std::int32_t id = first_counter;
  for (const TraceCounter& counter : source.counters) {
    if (counter.rank != rank) continue;
    const std::uint64_t uuid = uuid_of(pid, id++);
    perfetto::TrackDescriptor& track = *stream.packet().mutable_track_descriptor();
    track.set_uuid(uuid);
    track.set_parent_uuid(uuid_of(pid));
    track.set_name(counter.name);
    track.set_sibling_order_rank(id);
    if (counter.unit == "bytes") {
      track.mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
    } else {
      track.mutable_counter()->set_unit_name(counter.unit);
    }
    stream.append();
    for (const CounterPoint& point : points_of(counter)) {
      perfetto::TracePacket& packet = stream.packet();
      packet.set_timestamp(static_cast<std::uint64_t>(point.time_ns));
      packet.mutable_track_event()->set_type(perfetto::TrackEvent::TYPE_COUNTER);
      packet.mutable_track_event()->set_track_uuid(uuid);
      packet.mutable_track_event()->set_double_counter_value(point.value);
      stream.append();
    }
  }
}

void write_tracks(const TraceSource& source, const SourceSpans& spans, PacketStream& stream) {
  for (const RankTracks& rank : spans.ranks) {
    write_process(spans, source, rank.rank, stream);
    const std::int32_t pid = spans.pid_of(source.dag->ranks[rank.rank]);
    for (const Track& track : spans.tracks_of(rank)) write_thread(pid, track.stream, stream);
    write_counters(source, rank.rank, pid, stream);
  }
}

/// Writes the cluster's tracks, a group that is no process.
void write_cluster(const TraceSource& source, const SourceSpans& spans, PacketStream& stream) {
  if (spans.cluster_pid == 0) return;
  perfetto::TrackDescriptor& track = *stream.packet().mutable_track_descriptor();
  track.set_uuid(uuid_of(spans.cluster_pid));
  track.set_name(spans.cluster_name);
  track.set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
  stream.append();
  write_counters(source, std::nullopt, spans.cluster_pid, stream);
}

void set_annotation(const Annotation& annotation, perfetto::DebugAnnotation& out) {
  struct SetValue {
    perfetto::DebugAnnotation& out;
    void operator()(std::int64_t value) const { out.set_int_value(value); }
    void operator()(double value) const { out.set_double_value(value); }
    void operator()(std::string_view value) const { out.set_string_value(value.data(), value.size()); }
  };
  out.set_name_iid(annotation_iid(annotation.key));
  std::visit(SetValue{out}, annotation.value);
}

/// Writes the slices of one source. A flow leaves with the begin of its source and arrives with the ends of the others, so that
/// it leaves first even though members of a collective begin together.
void write_slices(const TraceSource& source, const SourceSpans& spans, std::uint64_t first_name_iid, PacketStream& stream) {
  const Dag& dag = *source.dag;
  Annotator annotator(source);
  for (const Span& span : spans.spans) {
    const Task& task = dag.tasks[span.task];
    const std::uint64_t track = uuid_of(spans.pid_of(dag.ranks[task.rank]), tid_of(task.stream));
    const std::uint64_t flow = spans.first_flow + task.group;

    perfetto::TracePacket& begin = stream.packet();
    begin.set_timestamp(static_cast<std::uint64_t>(span.start_ns));
    perfetto::TrackEvent& event = *begin.mutable_track_event();
    event.set_type(perfetto::TrackEvent::TYPE_SLICE_BEGIN);
    event.set_track_uuid(track);
    event.set_name_iid(first_name_iid + task.name);
    event.add_category_iids(category_iid(task));
    for (const Annotation& annotation : annotator.of(span.task)) set_annotation(annotation, *event.add_debug_annotations());
    if (span.flow == FlowRole::source) event.add_flow_ids(flow);
    stream.append();

    perfetto::TracePacket& end = stream.packet();
    end.set_timestamp(static_cast<std::uint64_t>(span.end_ns));
    perfetto::TrackEvent& end_event = *end.mutable_track_event();
    end_event.set_type(perfetto::TrackEvent::TYPE_SLICE_END);
    end_event.set_track_uuid(track);
    if (span.flow == FlowRole::step) end_event.add_flow_ids(flow);
    if (span.flow == FlowRole::last) end_event.add_terminating_flow_ids(flow);
    stream.append();
  }
}

}  // namespace

void write_perfetto(const std::vector<TraceSource>& sources, OutputFile& out) {
  const std::vector<SourceSpans> spans = spans_of(sources);
  PacketStream stream(out);
  write_strings(sources, stream);
  std::uint64_t first_name_iid = 1;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    write_tracks(sources[i], spans[i], stream);
    write_slices(sources[i], spans[i], first_name_iid, stream);
    write_cluster(sources[i], spans[i], stream);
    first_name_iid += sources[i].dag->names.size();
  }
}

}  // namespace tandem::traces
