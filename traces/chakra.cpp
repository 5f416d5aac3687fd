#include "traces/chakra.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>
#include <unordered_set>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"

namespace tandem::traces {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr const char* expected_chakra = "expected a Chakra execution trace (NAME.RANK.et)";

constexpr std::array<std::pair<OpKind, std::int64_t>, 9> collective_numbers{{{OpKind::all_reduce, 0},
                                                                             {OpKind::reduce, 1},
                                                                             {OpKind::all_gather, 2},
                                                                             {OpKind::gather, 3},
                                                                             {OpKind::scatter, 4},
                                                                             {OpKind::broadcast, 5},
                                                                             {OpKind::all_to_all, 6},
                                                                             {OpKind::reduce_scatter, 7},
                                                                             {OpKind::barrier, 9}}};
constexpr std::int64_t reduce_scatter_block = 8;

[[noreturn]] void refuse_trace(const std::string& path, const std::string& sentence) { throw InputError({path, 0, 0}, sentence); }

/// Why bytes that do not begin with a message are none of Chakra's.
std::string foreign_sentence(const std::string& bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return std::string("is empty; ") + expected_chakra;
  if (bytes[first] == '{' || bytes[first] == '[')
    return std::string("is JSON, such as PyTorch's execution trace, of which chakra_converter makes Chakra's; ") +
           expected_chakra;
  return std::string("does not begin with a message of Chakra's; ") + expected_chakra;
}

/// The messages of a file one after the other.
class FramedMessages {
 public:
  FramedMessages(const std::string& path, const std::string& bytes)
      : path_(path),
        bytes_(bytes),
        end_(static_cast<int>(bytes.size())),
        stream_(reinterpret_cast<const std::uint8_t*>(bytes.data()), end_) {}

  bool more() { return stream_.CurrentPosition() < end_; }

  template <typename Message>
  void read(Message& message) {
    const int begin = stream_.CurrentPosition();
    const std::string place = " from byte " + std::to_string(begin) + " on";
    std::uint32_t length = 0;
    const bool is_whole = stream_.ReadVarint32(&length) && length <= static_cast<std::uint32_t>(end_ - stream_.CurrentPosition());
    if (!is_whole && begin > 0)
      refuse_trace(path_, "ends within the node" + place + "; " + expected_chakra + " that was written to its end");
    const auto limit = stream_.PushLimit(static_cast<int>(is_whole ? length : 0));
    if (!is_whole || !message.ParseFromCodedStream(&stream_) || !stream_.ConsumedEntireMessage())
      refuse_trace(path_, begin == 0 ? foreign_sentence(bytes_) : "holds no node" + place + "; " + expected_chakra);
    stream_.PopLimit(limit);
  }

 private:
  const std::string& path_;
  const std::string& bytes_;
  const int end_;
  CodedInputStream stream_;
};

std::string schema_of(const chakra::GlobalMetadata& metadata) {
  for (const chakra::Attribute& attribute : metadata.attr())
    if (attribute.name() == "schema") return attribute.string_val();
  return metadata.version();
}

}  // namespace

std::optional<std::int64_t> chakra_collective_of(OpKind op) {
  for (const auto& [kind, number] : collective_numbers)
    if (kind == op) return number;
  return std::nullopt;
}

std::optional<OpKind> collective_of_chakra(std::int64_t number) {
  if (number == reduce_scatter_block) return OpKind::reduce_scatter;
  for (const auto& [kind, known] : collective_numbers)
    if (known == number) return kind;
  return std::nullopt;
}

ChakraTrace read_chakra(const std::string& path) {
  constexpr std::size_t most = std::size_t{1} << 31;
  const std::string bytes = read_bytes(path);
  if (bytes.size() >= most) refuse_trace(path, "is larger than 2 GB; expected a trace of one step");
  FramedMessages messages(path, bytes);
  ChakraTrace trace{.file = path, .schema = {}, .nodes = {}};
  chakra::GlobalMetadata metadata;
  messages.read(metadata);
  trace.schema = schema_of(metadata);
  std::unordered_set<std::uint64_t> ids;
  while (messages.more()) {
    chakra::Node& node = trace.nodes.emplace_back();
    messages.read(node);
    const std::string name = "node " + std::to_string(node.id()) + " (" + node.name() + ")";
    if (node.type() > last_chakra_node_type)
      refuse_trace(path, name + " is of type " + std::to_string(node.type()) + "; expected one of 0 to " +
                             std::to_string(last_chakra_node_type) + ", which schemas up to 1.1 have");
    if (!ids.insert(node.id()).second) refuse_trace(path, name + " has the id of an earlier node; expected each once");
  }
  if (trace.nodes.empty()) refuse_trace(path, std::string("holds no nodes; ") + expected_chakra);
  return trace;
}

const chakra::Attribute* attribute_of(const chakra::Node& node, std::string_view name) {
  for (const chakra::Attribute& attribute : node.attr())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

std::optional<std::int64_t> integer_of(const chakra::Node& node, std::string_view name) {
  const chakra::Attribute* const a = attribute_of(node, name);
  if (a == nullptr) return std::nullopt;
  if (a->has_int64_val()) return a->int64_val();
  if (a->has_uint64_val()) return static_cast<std::int64_t>(a->uint64_val());
  if (a->has_int32_val()) return a->int32_val();
  if (a->has_uint32_val()) return a->uint32_val();
  if (a->has_bool_val()) return a->bool_val() ? 1 : 0;
  if (a->has_sint64_val()) return a->sint64_val();
  if (a->has_sint32_val()) return a->sint32_val();
  if (a->has_fixed64_val()) return static_cast<std::int64_t>(a->fixed64_val());
  if (a->has_fixed32_val()) return a->fixed32_val();
  if (a->has_sfixed64_val()) return a->sfixed64_val();
  if (a->has_sfixed32_val()) return a->sfixed32_val();
  if (a->has_double_val()) return static_cast<std::int64_t>(a->double_val());
  if (a->has_float_val()) return static_cast<std::int64_t>(a->float_val());
  return std::nullopt;
}

std::optional<double> number_of(const chakra::Node& node, std::string_view name) {
  const chakra::Attribute* const a = attribute_of(node, name);
  if (a != nullptr && a->has_double_val()) return a->double_val();
  if (a != nullptr && a->has_float_val()) return a->float_val();
  if (const auto whole = integer_of(node, name)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::string> text_of(const chakra::Node& node, std::string_view name) {
  const chakra::Attribute* const a = attribute_of(node, name);
  if (a == nullptr) return std::nullopt;
  if (a->has_string_val()) return a->string_val();
  if (const auto whole = integer_of(node, name)) return std::to_string(*whole);
  return std::nullopt;
}

ChakraWriter::ChakraWriter(const std::string& path) : file_(path) {
  chakra::GlobalMetadata metadata;
  metadata.set_version("0.0.4");  // what ASTRA-sim's own examples state
  put(metadata);
}

template <typename Message>
void ChakraWriter::put(const Message& message) {
  constexpr std::size_t most_digits = 10;
  std::array<std::uint8_t, most_digits> length{};
  message.SerializeToString(&message_);
  const std::uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(message_.size()), length.data());
  file_.write({reinterpret_cast<const char*>(length.data()), static_cast<std::size_t>(end - length.data())});
  file_.write(message_);
}

void ChakraWriter::write(const chakra::Node& node) { put(node); }

void add_attribute(chakra::Node& node, std::string_view name, std::int64_t value) {
  chakra::Attribute& attribute = *node.add_attr();
  attribute.set_name(std::string(name));
  attribute.set_int64_val(value);
}

void add_attribute(chakra::Node& node, std::string_view name, double value) {
  chakra::Attribute& attribute = *node.add_attr();
  attribute.set_name(std::string(name));
  attribute.set_double_val(value);
}

void add_attribute(chakra::Node& node, std::string_view name, bool value) {
  chakra::Attribute& attribute = *node.add_attr();
  attribute.set_name(std::string(name));
  attribute.set_bool_val(value);
}

void add_attribute(chakra::Node& node, std::string_view name, std::string_view value) {
  chakra::Attribute& attribute = *node.add_attr();
  attribute.set_name(std::string(name));
  attribute.set_string_val(std::string(value));
}

}  // namespace tandem::traces
