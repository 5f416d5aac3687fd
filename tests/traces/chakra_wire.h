#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::traces {

// Chakra's execution traces byte by byte, without the generated classes, so that a wrong number in our schema cannot hide in both
// writer and reader. The numbers are those of mlcommons/chakra, schema/protobuf/et_def.proto.

/// An attribute's value by the number of its field: 3 double_val, 9 int64_val, 27 bool_val, 29 string_val.
struct WireAttribute {
  std::uint64_t field = 0;
  std::uint64_t bits = 0;  ///< of a number, as it stands on the wire
  std::string text = {};
};

struct WireNode {
  std::uint64_t id = 0;
  std::string name = {};
  std::uint64_t type = 0;
  std::vector<std::uint64_t> data_deps = {};
  std::uint64_t duration_micros = 0;
  std::map<std::string, WireAttribute> attributes = {};

  std::int64_t number(const std::string& attribute) const { return static_cast<std::int64_t>(attributes.at(attribute).bits); }
};

struct WireTrace {
  std::string version;
  std::vector<WireNode> nodes;
};

namespace chakra_wire {

constexpr std::uint64_t varint_wire = 0, fixed64_wire = 1, bytes_wire = 2;

struct Field {
  std::uint64_t number = 0, value = 0;
  std::string_view bytes;
};

inline std::uint64_t take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(in.at(0));
    in.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a varint of more than 64 bits");
}

inline std::string_view take(std::string_view& in, std::size_t size) {
  if (size > in.size()) throw std::runtime_error("a message ends early");
  const std::string_view taken = in.substr(0, size);
  in.remove_prefix(size);
  return taken;
}

inline std::vector<Field> fields_of(std::string_view in) {
  std::vector<Field> fields;
  while (!in.empty()) {
    const std::uint64_t tag = take_varint(in);
    Field field{.number = tag >> 3, .value = 0, .bytes = {}};
    if ((tag & 7) == varint_wire) {
      field.value = take_varint(in);
    } else if ((tag & 7) == fixed64_wire) {
      const std::string_view bytes = take(in, 8);
      for (std::size_t i = 8; i-- > 0;) field.value = field.value << 8 | static_cast<std::uint8_t>(bytes[i]);
    } else if ((tag & 7) == bytes_wire) {
      field.bytes = take(in, take_varint(in));
    } else {
      throw std::runtime_error("a wire type that no field of the schema has here");
    }
    fields.push_back(field);
  }
  return fields;
}

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number_field(std::uint64_t number, std::uint64_t value) {
  return varint(number << 3 | varint_wire) + varint(value);
}
inline std::string bytes_field(std::uint64_t number, const std::string& bytes) {
  return varint(number << 3 | bytes_wire) + varint(bytes.size()) + bytes;
}
inline std::string framed(const std::string& message) { return varint(message.size()) + message; }

inline std::string attribute(const std::string& name, const WireAttribute& value) {
  return bytes_field(1, name) +
         (value.field == 29 ? bytes_field(value.field, value.text) : number_field(value.field, value.bits));
}

}  // namespace chakra_wire

inline WireTrace read_wire_trace(std::string_view bytes) {
  using namespace chakra_wire;
  WireTrace trace;
  for (bool is_first = true; !bytes.empty(); is_first = false) {
    const std::string_view message = take(bytes, take_varint(bytes));
    if (is_first) {
      for (const Field& field : fields_of(message))
        if (field.number == 1) trace.version = field.bytes;
      continue;
    }
    WireNode& node = trace.nodes.emplace_back();
    for (const Field& field : fields_of(message)) {
      if (field.number == 1) node.id = field.value;
      if (field.number == 2) node.name = field.bytes;
      if (field.number == 3) node.type = field.value;
      if (field.number == 5)
        for (std::string_view packed = field.bytes; !packed.empty();) node.data_deps.push_back(take_varint(packed));
      if (field.number == 7) node.duration_micros = field.value;
      if (field.number != 10) continue;
      std::string name;
      WireAttribute value;
      for (const Field& part : fields_of(field.bytes)) {
        if (part.number == 1) name = part.bytes;
        if (part.number > 2) value = {part.number, part.value, std::string(part.bytes)};
      }
      node.attributes[name] = value;
    }
  }
  return trace;
}

/// `version`: 0.0.4 has a field of that name; later ones, of converters from PyTorch, an attribute "schema".
inline std::string wire_trace(const std::vector<WireNode>& nodes, const std::string& version = "0.0.4") {
  using namespace chakra_wire;
  const bool is_old = version == "0.0.4";
  std::string bytes = framed(is_old ? bytes_field(1, version) : bytes_field(2, attribute("schema", {29, 0, version})));
  for (const WireNode& node : nodes) {
    std::string message = (node.id > 0 ? number_field(1, node.id) : "") + bytes_field(2, node.name) + number_field(3, node.type);
    std::string packed;
    for (const std::uint64_t before : node.data_deps) packed += varint(before);
    if (!packed.empty()) message += bytes_field(5, packed);
    if (node.duration_micros > 0) message += number_field(7, node.duration_micros);
    for (const auto& [name, value] : node.attributes) message += bytes_field(10, attribute(name, value));
    bytes += framed(message);
  }
  return bytes;
}

inline void write_wire_trace(const std::string& path, const std::vector<WireNode>& nodes, const std::string& version = "0.0.4") {
  std::ofstream(path, std::ios::binary) << wire_trace(nodes, version);
}

// The numbers of NodeType and CollectiveCommType.
inline constexpr std::uint64_t wire_load = 2, wire_store = 3, wire_compute = 4, wire_send = 5, wire_receive = 6,
                               wire_collective = 7;
inline constexpr std::uint64_t wire_all_reduce = 0, wire_all_gather = 2, wire_all_to_all = 6, wire_reduce_scatter = 7;

inline WireNode wire_kernel(std::uint64_t id, std::uint64_t micros, std::vector<std::uint64_t> after = {}) {
  return {.id = id,
          .name = "kernel",
          .type = wire_compute,
          .data_deps = std::move(after),
          .duration_micros = micros,
          .attributes = {{"is_cpu_op", {27, 0}}}};
}
inline WireNode wire_exchange(std::uint64_t id, std::uint64_t comm_type, std::uint64_t bytes,
                              std::vector<std::uint64_t> after = {}, const std::string& group = "") {
  WireNode node{.id = id,
                .name = "exchange",
                .type = wire_collective,
                .data_deps = std::move(after),
                .attributes = {{"is_cpu_op", {27, 0}}, {"comm_type", {9, comm_type}}, {"comm_size", {9, bytes}}}};
  if (!group.empty()) node.attributes["pg_name"] = {29, 0, group};
  return node;
}
/// From rank `from` to rank `to`: a send, or with `receives` its other end.
inline WireNode wire_transfer(std::uint64_t id, bool receives, std::uint64_t from, std::uint64_t to, std::uint64_t bytes,
                              std::uint64_t tag, std::vector<std::uint64_t> after = {}) {
  return {.id = id,
          .name = receives ? "receive" : "send",
          .type = receives ? wire_receive : wire_send,
          .data_deps = std::move(after),
          .attributes = {{"is_cpu_op", {27, 0}},
                         {"comm_src", {9, from}},
                         {"comm_dst", {9, to}},
                         {"comm_size", {9, bytes}},
                         {"comm_tag", {9, tag}}}};
}

}  // namespace tandem::traces
