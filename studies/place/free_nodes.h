#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::studies {

/// Reads the nodes that a job may have, in the order given, from a list of numbers and ranges ("0-3,8,12-15") or from a file of
/// such lists, one or more to a line, in which lines that begin with # are comments. Throws InputError, which names all nodes
/// that a cluster of `nodes` nodes does not have, or all that are listed twice.
std::vector<std::uint32_t> read_free_nodes(const std::string& list_or_file, std::int64_t nodes);

}  // namespace tandem::studies
