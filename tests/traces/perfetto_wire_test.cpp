// Reads the bytes without the generated classes, so that a wrong number in the schema cannot hide in both writer and reader. The
// numbers are those of Perfetto's protos/perfetto/trace/{trace,trace_packet}.proto and track_event/*.proto.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"

namespace tandem::traces::perfetto_wire_test {
namespace {

enum class Wire : std::uint8_t {
  varint = 0,
  fixed64 = 1,
  bytes = 2
};

struct Field {
  std::uint64_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t value = 0;
  std::string_view bytes;
};

std::uint64_t take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(in.at(0));
    in.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("varint of more than 64 bits");
}

std::vector<Field> fields_of(std::string_view in) {
  std::vector<Field> fields;
  while (!in.empty()) {
    const std::uint64_t tag = take_varint(in);
    Field field{.number = tag >> 3, .wire = static_cast<Wire>(tag & 7), .value = 0, .bytes = {}};
    if (field.wire == Wire::varint) {
      field.value = take_varint(in);
    } else {
      const std::size_t size = field.wire == Wire::fixed64 ? 8 : take_varint(in);
      EXPECT_TRUE(field.wire == Wire::fixed64 || field.wire == Wire::bytes) << "field " << field.number;
      EXPECT_LE(size, in.size());
      field.bytes = in.substr(0, size);
      for (std::size_t i = 0; field.wire == Wire::fixed64 && i < size; ++i) {
        field.value |= std::uint64_t{static_cast<std::uint8_t>(field.bytes[i])} << (8 * i);
      }
      in.remove_prefix(size);
    }
    fields.push_back(field);
  }
  return fields;
}

const Field* find(const std::vector<Field>& fields, std::uint64_t number) {
  for (const Field& field : fields) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

using Numbers = std::map<std::uint64_t, Wire>;

void collect(const std::vector<Field>& fields, Numbers& numbers) {
  for (const Field& field : fields) {
    EXPECT_EQ(numbers.try_emplace(field.number, field.wire).first->second, field.wire) << field.number;
  }
}

class PerfettoWire : public testing::Test {
 protected:
  const Sample sample = pipeline_sample(2, 3, 2);
  const std::vector<TraceCounter> counters{{"memory", "bytes", 0, {0}, {1}}, {"nvlink", "%", {}, {0}, {2}}};
  const std::string bytes = written_trace({{"simulated", &sample.dag, &sample.timeline, {}, counters}}, ".pftrace");
};

TEST_F(PerfettoWire, FileIsFieldOneOfTraceRepeated) {
  ASSERT_EQ(bytes.at(0), 0x0A);
  for (const Field& packet : fields_of(bytes)) {
    EXPECT_EQ(packet.number, 1U);
    EXPECT_EQ(packet.wire, Wire::bytes);
  }
}

TEST_F(PerfettoWire, FieldNumbersArePerfettos) {
  Numbers packets, events, annotations, tracks, processes, threads, counted, interned;
  for (const Field& packet : fields_of(bytes)) {
    const std::vector<Field> fields = fields_of(packet.bytes);
    collect(fields, packets);
    if (const Field* event = find(fields, 11)) {
      collect(fields_of(event->bytes), events);
      for (const Field& field : fields_of(event->bytes)) {
        if (field.number == 4) collect(fields_of(field.bytes), annotations);
      }
    }
    if (const Field* data = find(fields, 12)) collect(fields_of(data->bytes), interned);
    if (const Field* track = find(fields, 60)) {
      const std::vector<Field> described = fields_of(track->bytes);
      collect(described, tracks);
      if (const Field* process = find(described, 3)) collect(fields_of(process->bytes), processes);
      if (const Field* thread = find(described, 4)) collect(fields_of(thread->bytes), threads);
      if (const Field* counter = find(described, 8)) collect(fields_of(counter->bytes), counted);
    }
  }
  // timestamp, trusted_packet_sequence_id, track_event, interned_data, sequence_flags, track_descriptor, first_packet_on_sequence
  EXPECT_EQ(packets, (Numbers{{8, Wire::varint},
                              {10, Wire::varint},
                              {11, Wire::bytes},
                              {12, Wire::bytes},
                              {13, Wire::varint},
                              {60, Wire::bytes},
                              {87, Wire::varint}}));
  // category_iids, debug_annotations, type, name_iid, track_uuid, double_counter_value, flow_ids, terminating_flow_ids
  EXPECT_EQ(events, (Numbers{{3, Wire::varint},
                             {4, Wire::bytes},
                             {9, Wire::varint},
                             {10, Wire::varint},
                             {11, Wire::varint},
                             {44, Wire::fixed64},
                             {47, Wire::fixed64},
                             {48, Wire::fixed64}}));
  // name_iid, int_value, double_value, string_value
  EXPECT_EQ(annotations, (Numbers{{1, Wire::varint}, {4, Wire::varint}, {5, Wire::fixed64}, {6, Wire::bytes}}));
  // uuid, name, process, thread, parent_uuid, counter, child_ordering, sibling_order_rank
  EXPECT_EQ(tracks, (Numbers{{1, Wire::varint},
                             {2, Wire::bytes},
                             {3, Wire::bytes},
                             {4, Wire::bytes},
                             {5, Wire::varint},
                             {8, Wire::bytes},
                             {11, Wire::varint},
                             {12, Wire::varint}}));
  // pid, legacy_sort_index, process_name
  EXPECT_EQ(processes, (Numbers{{1, Wire::varint}, {3, Wire::varint}, {6, Wire::bytes}}));
  // pid, tid, legacy_sort_index, thread_name
  EXPECT_EQ(threads, (Numbers{{1, Wire::varint}, {2, Wire::varint}, {3, Wire::varint}, {5, Wire::bytes}}));
  // unit, unit_name
  EXPECT_EQ(counted, (Numbers{{3, Wire::varint}, {6, Wire::bytes}}));
  // event_categories, event_names, debug_annotation_names
  EXPECT_EQ(interned, (Numbers{{1, Wire::bytes}, {2, Wire::bytes}, {3, Wire::bytes}}));
}

TEST_F(PerfettoWire, BeginsAndEndsBalanceOnEveryTrack) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> times;  // of the track, begin and end in turn
  for (const Field& packet : fields_of(bytes)) {
    const std::vector<Field> fields = fields_of(packet.bytes);
    const Field* event = find(fields, 11);
    if (event == nullptr) continue;
    const std::vector<Field> members = fields_of(event->bytes);
    if (find(members, 9)->value == 4) continue;  // TYPE_COUNTER
    std::vector<std::uint64_t>& track = times[find(members, 11)->value];
    EXPECT_EQ(find(members, 9)->value, track.size() % 2 == 0 ? 1U : 2U);  // TYPE_SLICE_BEGIN, TYPE_SLICE_END
    track.push_back(find(fields, 8)->value);
  }
  std::size_t total = 0;
  for (const auto& [uuid, track] : times) {
    EXPECT_TRUE(std::is_sorted(track.begin(), track.end())) << uuid;
    total += track.size();
  }
  EXPECT_EQ(total, 2 * sample.dag.tasks.size());
}

}  // namespace
}  // namespace tandem::traces::perfetto_wire_test
