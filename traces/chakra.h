#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ops/operation.h"
#include "traces/chakra.pb.h"
#include "traces/output_file.h"

namespace tandem::traces {

/// The kinds of nodes, by Chakra's numbers (mlcommons/chakra, schema/protobuf/et_def.proto, NodeType).
enum class ChakraNodeType : std::uint32_t {
  invalid = 0,
  metadata = 1,
  memory_load = 2,
  memory_store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7,
  storage = 8,
  batch = 9,
  checkpoint = 10
};
inline constexpr std::uint32_t last_chakra_node_type = 10;

/// Chakra's number of a collective (CollectiveCommType); nothing where it has none.
std::optional<std::int64_t> chakra_collective_of(OpKind op);
/// The other way round. Chakra's REDUCE_SCATTER_BLOCK is a reduce-scatter.
std::optional<OpKind> collective_of_chakra(std::int64_t number);

/// One rank's execution trace.
struct ChakraTrace {
  std::string file;
  std::string schema;  ///< "0.0.4", "1.0.2-chakra.0.0.4"; empty: not told
  std::vector<chakra::Node> nodes;
};

/// Reads a trace of any schema from 0.0.4 on. Throws InputError where the file cannot be read, is none, or ends within a node,
/// and where two nodes have one id.
ChakraTrace read_chakra(const std::string& path);

/// The attribute of a node; null where it has none of the name. Of several the first.
const chakra::Attribute* attribute_of(const chakra::Node& node, std::string_view name);
/// The value of a numeric attribute, whichever of the numeric types it was written as: schemas and converters differ in them.
/// Nothing where the node has none, or it is no number.
std::optional<double> number_of(const chakra::Node& node, std::string_view name);
/// The same as a whole number, to the last digit.
std::optional<std::int64_t> integer_of(const chakra::Node& node, std::string_view name);
/// The text of an attribute; of a number its digits, as some write the names of process groups.
std::optional<std::string> text_of(const chakra::Node& node, std::string_view name);

/// Writes a rank's trace node by node.
class ChakraWriter {
 public:
  /// Throws std::runtime_error where the file cannot be written, as `OutputFile` does.
  explicit ChakraWriter(const std::string& path);
  void write(const chakra::Node& node);
  void commit() { file_.commit(); }

 private:
  OutputFile file_;
  std::string message_;

  template <typename Message>
  void put(const Message& message);
};

// Adds an attribute to a node, of the type that Chakra's own generator writes it as.
void add_attribute(chakra::Node& node, std::string_view name, std::int64_t value);
void add_attribute(chakra::Node& node, std::string_view name, double value);
void add_attribute(chakra::Node& node, std::string_view name, bool value);
void add_attribute(chakra::Node& node, std::string_view name, std::string_view value);

}  // namespace tandem::traces
