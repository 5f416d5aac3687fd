#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "traces/chakra.h"

namespace tandem::studies {

/// A rank's nodes in an order in which they can run, and what each waits for.
struct NodeOrder {
  std::vector<std::uint32_t> nodes;               ///< indices into the trace's
  std::vector<std::vector<std::uint32_t>> after;  ///< by place in `nodes`: the earlier places it waits for
  std::size_t dropped = 0;                        ///< control dependencies that were left out
  bool circular = false;                          ///< all of them were, as they lead in a circle
};

/// Orders the nodes by their dependencies; of those that could be next, the one that began first, or where that is not told of
/// all, of the lowest id. A control dependency on the node itself, or on one that is not there, counts as none: PyTorch's
/// converters leave such. Throws InputError where data dependencies are on nodes that are not there, or lead in a circle.
NodeOrder order_of(const ChakraTrace& trace);

/// What of a node is an exchange.
struct ExchangeNode {
  OpKind op = OpKind::all_reduce;
  Bytes bytes = 0;                                  ///< `comm_size`: what a rank puts in
  std::string group = {};                           ///< `pg_name`
  std::optional<std::uint32_t> from = {}, to = {};  ///< of sends and receives, where they are told
  std::int64_t tag = 0;
};

/// Returns the exchange of a node, nothing of others: of those on the CPU, too, which call one. Throws InputError where it lacks
/// what an exchange needs, or has an operation that is not known.
std::optional<ExchangeNode> exchange_of(const ChakraTrace& trace, const chakra::Node& node);

/// A node as messages call it: "node 4 (all_reduce)".
std::string name_of_node(const chakra::Node& node);

}  // namespace tandem::studies
